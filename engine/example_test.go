package engine_test

import (
	"fmt"

	"github.com/1bit-systems/pkg/engine"
)

// The status is 200 and the text is fluent, and yet the logits were NaN.
func ExampleAnswer_Faults() {
	body := `{"content":" fine","tokens_predicted":1,"completion_probabilities":[{"id":5,"token":" fine","logprob":null}]}`
	for _, f := range engine.ParseAnswer(200, []byte(body), true).Faults() {
		fmt.Println(f.Face+":", f.Detail)
	}
	// Output:
	// nan: null log-probability: 1 of 1 tokens, the first is token 0
}
