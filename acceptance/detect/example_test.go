package detect_test

import (
	"fmt"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
)

// A set is told what happens in a server's life.
func ExampleNew() {
	set, err := detect.New(map[string]string{detect.Numeric: "gate"})
	if err != nil {
		fmt.Println(err)
		return
	}
	set.Sent(1, "c4tngmqz7x2apdhf")
	set.Sent(2, "d4wkaj5e3hnyqvbr")
	body := `{"content":"so c4tngmqz7x2apdhf","tokens_predicted":1,"id_slot":3,"completion_probabilities":[{"id":0,"logprob":null}]}`
	for _, f := range set.Exchange(&detect.Exchange{
		ID: 2, NPredict: 1, ProbsAsked: true, Answer: engine.ParseAnswer(200, []byte(body), true),
	}) {
		fmt.Println(f.Grade, f.Face+":", f.Detail)
	}
	// Output:
	// fault nan-wire: null log-probability: 1 of 1 tokens, the first is token 0
	// fault leak: the answer has the nonce of request 1
}
