// Package client calls a Prompt Assembly service.
//
//	c, err := client.Dial("localhost:50051")
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//
//	answer, err := c.SelectMemory(ctx, client.SelectRequest("user:mei", memories))
//	if refused, ok := errors.AsType[*client.Error](err); ok {
//		log.Print(refused.Reason, refused.Violations)
//	}
//
// [Dial] takes any gRPC target: host:port, dns:///host:port, which spreads calls over all addresses
// of the name, or unix:path. [DialAll] takes several fixed addresses, and [New] a connection that
// the caller has made, such as one in memory. Connections are made when they are needed. One
// [Client] is enough for a program, and safe for concurrent use.
//
// Requests and answers are the generated types of package promptassemblyv1. [SelectRequest],
// [Segment], [Limit] and [Unlimited] make them out of what a Go program has.
//
// # Identity
//
// A server wants to know who calls it. [WithTLSFiles] shows it a certificate, [WithTokenFile] a token;
// both are files, which are read again as they change. Without either, connections are plaintext, for a
// server that takes its identities from something between.
//
//	c, err := client.Dial("assembly.example.org:50051", client.WithTLSFiles(client.TLSFiles{
//		CA: "/run/identity/ca.crt", Certificate: "/run/identity/tls.crt", Key: "/run/identity/tls.key",
//		ServerID: "spiffe://example.org/prompt-assembly",
//	}))
//
// A call that the server refuses for its identity fails at once, with UNAUTHENTICATED, or with
// PERMISSION_DENIED and in the metadata what the caller may not do.
//
// # Failures
//
// Every call can be repeated without harm, and the client does so by itself: when a server is
// unavailable, when a connection breaks, also in the middle of an answer, when a server does not
// answer in time, when it ends a call by itself, and when it says that it is overloaded, then after
// the time that it asks for. The
// next attempt goes to another server, if there is one. While no server can be reached, calls wait.
//
// A refusal of the request is final and comes back at once. So does every failure once the deadline
// of the call has passed (30 seconds, or that of its context if it is earlier) or its attempts are
// used up. All calls of a client share a budget of repeats, so that they do not add to an outage: of
// 500, refilled by 10 a second and by one for every five calls that are answered. Calls that a server
// refuses as overloaded cost it next to nothing, and are repeated, at growing intervals, until the
// deadline.
//
// What a call fails with is an [*Error]. status.FromError sees through it, and so does errors.Is
// with context.DeadlineExceeded and context.Canceled.
package client
