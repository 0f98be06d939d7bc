module github.com/promptassembly/promptassembly/.ci/tokens/bench

go 1.26.0

require (
	github.com/promptassembly/promptassembly v0.0.0
	github.com/tiktoken-go/tokenizer v0.10.0
)

require github.com/dlclark/regexp2/v2 v2.5.1 // indirect

replace github.com/promptassembly/promptassembly => ../../..
