// Package load measures whole calls of the server: its benchmarks run it in a process of its own, on
// one processor, and load it from another. They need Linux and two processors.
package load
