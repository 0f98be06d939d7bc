"""Runs the conformance vectors from a Python client against a server over TCP.

Usage: vectors.py PROMPTD GENERATED VECTORS

PROMPTD is the server's binary, GENERATED the folder with the generated Python code and VECTORS the
folder with the vectors. Ends with status 0 if every case passes.
"""

import base64
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import grpc
import jwt
from google.protobuf import json_format
from google.rpc import error_details_pb2
from grpc_status import rpc_status

MAX_STATUS_BYTES = 4096


class Mismatch(Exception):
    """An answer that is not the one that a vector demands."""


def start(promptd, folder):
    """Starts the server on a free port, with certificates in the folder and a log that fills no pipe;
    returns the process and its address."""
    args = [promptd, "dev", "--dir", folder, "--listen", "127.0.0.1:0", "--admin-listen", "off", "--log-calls=false"]
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if found := re.search(r"msg=serving address=(\S+)", line):
            return process, found[1]
    raise SystemExit("promptd did not start")


class Client:
    """Calls the service as the harness or the agent, with messages that are already encoded."""

    def __init__(self, address, folder, messages, who="harness"):
        self.messages = messages
        ca, key, certificate = (
            (pathlib.Path(folder) / name).read_bytes() for name in ("ca.pem", f"{who}-key.pem", f"{who}.pem")
        )
        self.channel = grpc.secure_channel(
            address,
            grpc.ssl_channel_credentials(ca, key, certificate),
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )

    def call(self, method, request):
        """Returns the response, or raises grpc.RpcError."""
        response = getattr(self.messages, method + "Response")
        rpc = self.channel.unary_unary(
            f"/promptassembly.v1.PromptAssemblyService/{method}",
            request_serializer=lambda encoded: encoded,
            response_deserializer=response.FromString,
        )
        return rpc(request, timeout=60)


def encode(messages, vector):
    """Returns the request of a vector as the bytes to send."""
    request = json_format.ParseDict(vector.get("request", {}), getattr(messages, vector["method"] + "Request")())
    sent = request.SerializeToString()
    pieces = vector.get("append", [])
    for piece in pieces if isinstance(pieces, list) else [pieces]:
        sent += base64.b64decode(piece["base64"]) * piece["times"]
    return sent


def details_of(error):
    """Returns the ErrorInfo and the field violations of a refusal, and the size of its status."""
    status = rpc_status.from_call(error)
    info, violations = error_details_pb2.ErrorInfo(), []
    if status is None:
        return info, violations, 0
    for detail in status.details:
        bad_request = error_details_pb2.BadRequest()
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
        elif detail.Unpack(bad_request):
            violations = list(bad_request.field_violations)
    return info, violations, status.ByteSize()


def expect(what, got, want):
    if got != want:
        raise Mismatch(f"{what}: got {got!r}, want {want!r}")


def check_refusal(error, want):
    info, violations, size = details_of(error)
    expect("code", error.code().name, want["code"])
    if not want.get("reason"):
        return
    expect("reason", (info.domain, info.reason), ("promptassembly", want["reason"]))

    paths, wanted = [violation.field for violation in violations], want.get("violations", [])
    expect("violations", paths, wanted[: len(paths)])
    metadata = dict(info.metadata)
    if wanted:
        expect("violation_count", metadata.pop("violation_count", None), str(len(wanted)))
    wanted_metadata = dict(want.get("metadata", {}))
    segments = metadata.get("segments")
    if segments is not None and wanted_metadata.get("segments", "").startswith(segments + ","):
        # Cut before a name that does not fit; lengths may take a few bytes more.
        following = wanted_metadata["segments"][len(segments) + 1 :].split(",")[0]
        if size + len("," + following) + 8 <= MAX_STATUS_BYTES:
            raise Mismatch(f"segments end before {following!r} in {size} bytes")
        wanted_metadata["segments"] = segments
    if "known" in wanted_metadata:
        known = also_in(wanted_metadata["known"].split(","), metadata.get("known", "").split(","), lambda name: name)
        metadata["known"] = ",".join(known)
    expect("metadata", metadata, wanted_metadata)

    if size > MAX_STATUS_BYTES:
        raise Mismatch(f"the status takes {size} bytes")
    # A path of these requests and its description take less than 512 bytes.
    if len(paths) < len(wanted) and size < MAX_STATUS_BYTES - 512:
        raise Mismatch(f"{len(paths)} of {len(wanted)} violations in {size} bytes")


def also_in(wanted, got, name):
    """Returns what of got has the name of one in wanted: a server may have more tokenizers."""
    names = [name(element) for element in got]
    expect("names in order", names, sorted(set(names), key=lambda text: text.encode()))
    return [element for element in got if name(element) in {name(element) for element in wanted}]


def comparable(message):
    """Clears what is free text."""
    for decision in (*decisions(message, "plan"), *decisions(message, "memory_plan")):
        decision.detail = ""
    if "unicode_version" in message.DESCRIPTOR.fields_by_name:
        message.unicode_version = ""
        for tokenizer in message.tokenizers:
            tokenizer.version = tokenizer.source = ""
    return message


def decisions(message, plan):
    if plan not in message.DESCRIPTOR.fields_by_name or not message.HasField(plan):
        return []
    return getattr(message, plan).decisions


def run(client, vector):
    """Raises Mismatch unless the server answers as the vector demands."""
    sent, want = encode(client.messages, vector), vector["answer"]
    try:
        got = client.call(vector["method"], sent)
    except grpc.RpcError as error:
        if "error" not in want:
            raise Mismatch(f"refused: {error.code().name} {error.details()}") from error
        check_refusal(error, want["error"])
        return
    if "error" in want:
        raise Mismatch(f"answered, want {want['error']}")
    wanted = json_format.ParseDict(want, type(got)())
    if vector["method"] == "ListTokenizers":
        kept = also_in(wanted.tokenizers, got.tokenizers, lambda tokenizer: tokenizer.name)
        got = type(got)(tokenizers=kept, unicode_version=got.unicode_version)
    expect("answer", comparable(got), comparable(wanted))


def many_faults(client):
    """A client can read the refusal of a request with 5,000 faults."""
    messages = client.messages
    request = messages.SelectMemoryRequest(user_scope="u")
    for i in range(5000):
        candidate = request.candidates.add(memory_id=f"m{i}", text="t", user_scope="u", score=0.5)
        candidate.provenance.source_id = candidate.provenance.source_type = "s"
    try:
        client.call("SelectMemory", request.SerializeToString())
    except grpc.RpcError as error:
        paths = [f"candidates[{i}].source_rank" for i in range(5000)]
        check_refusal(error, {"code": "INVALID_ARGUMENT", "reason": "INVALID_REQUEST", "violations": paths})
        return
    raise Mismatch("answered a request with 5,000 faults")


def signed(payload, key, kid, issuer):
    """Returns a grant as another library signs it."""
    headers = {"typ": "promptassembly-grant", "kid": kid, "iss": issuer}
    return jwt.api_jws.encode(payload, key, algorithm="EdDSA", headers=headers).encode()


def carried_grant(harness, agent, folder, grants):
    """A grant that is signed here gets the agent the harness's answer."""
    request = json_format.Parse((folder / "request.json").read_text(), harness.messages.SelectMemoryRequest())
    grant = grants.Grant(audience="promptd-dev", query_id=request.query_id, select_memory=request)
    grant.issue_time.GetCurrentTime()
    grant.expire_time.FromSeconds(grant.issue_time.seconds + 60)
    key = jwt.PyJWK.from_json((folder / "grant-key.jwk").read_text())
    token = signed(grant.SerializeToString(), key, key.key_id, "https://harness.promptassembly.test")
    want = harness.call("SelectMemory", request.SerializeToString())
    carrying = agent.messages.SelectMemoryRequest(query_id=request.query_id, grant=token)
    expect("answer", agent.call("SelectMemory", carrying.SerializeToString()), want)


def grant_vector(path, keys, grants):
    """The token of a vector is what this library makes of it, too."""
    vector = json.loads(path.read_text(encoding="utf-8"))
    if "grant" not in vector:
        return
    header = jwt.get_unverified_header(vector["token"])
    expect("members of the header", sorted(header), ["alg", "iss", "kid", "typ"])
    payload = jwt.api_jws.decode(vector["token"], keys[header["kid"]], algorithms=[header["alg"]])
    expect("grant", grants.Grant.FromString(payload), json_format.ParseDict(vector["grant"], grants.Grant()))


def cases(folder):
    for path in sorted(folder.glob("*/*.json")):
        if path.parent.name == "grants":
            continue
        yield str(path.relative_to(folder)), json.loads(path.read_text(encoding="utf-8"))
    with open(folder / "random.jsonl", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            yield f"random.jsonl:{number}", json.loads(line)


def main(promptd, generated, vectors):
    sys.path.insert(0, generated)
    from promptassembly.v1 import grant_pb2, memory_pb2, prompt_pb2, tokens_pb2

    class Messages:
        SelectMemoryRequest, SelectMemoryResponse = memory_pb2.SelectMemoryRequest, memory_pb2.SelectMemoryResponse
        PlanPromptRequest, PlanPromptResponse = prompt_pb2.PlanPromptRequest, prompt_pb2.PlanPromptResponse
        ListTokenizersRequest, ListTokenizersResponse = (
            tokens_pb2.ListTokenizersRequest,
            tokens_pb2.ListTokenizersResponse,
        )

    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        process, address = start(promptd, folder)
        try:
            client = Client(address, folder, Messages)
            checks = [(name, lambda vector=vector: run(client, vector)) for name, vector in cases(pathlib.Path(vectors))]
            checks.append(("5,000 faults", lambda: many_faults(client)))
            agent = Client(address, folder, Messages, who="agent")
            checks.append(("a grant", lambda: carried_grant(client, agent, pathlib.Path(folder), grant_pb2)))
            grants = pathlib.Path(vectors) / "grants"
            keys = {key.key_id: key for key in jwt.PyJWKSet.from_json((grants / "keys.jwks").read_text()).keys}
            for path in sorted(grants.glob("*.json")):
                checks.append((f"grants/{path.name}", lambda path=path: grant_vector(path, keys, grant_pb2)))
            for name, check in checks:
                try:
                    check()
                    passed += 1
                except Mismatch as mismatch:
                    failed += 1
                    print(f"FAIL {name}: {mismatch}")
        finally:
            process.terminate()
            process.wait()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    sys.exit(main(*sys.argv[1:]))
