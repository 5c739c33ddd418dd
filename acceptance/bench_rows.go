package acceptance

import (
	"bytes"
	"encoding/json"
)

// benchTokens reads what llama-bench printed with `-o jsonl`: one object a
// test, with the length of prompt and answer and one time a repetition. It
// counts the results and the tokens that they stand for; lines that are no
// whole result are passed over.
func benchTokens(out []byte) (results int, tokens int64) {
	for text := range bytes.Lines(out) {
		var row struct {
			Prompt  int64             `json:"n_prompt"`
			Gen     int64             `json:"n_gen"`
			Samples []json.RawMessage `json:"samples_ns"`
		}
		if !bytes.HasSuffix(text, []byte{'\n'}) || json.Unmarshal(text, &row) != nil {
			continue
		}
		if row.Prompt < 0 || row.Gen < 0 || row.Prompt+row.Gen <= 0 || row.Prompt+row.Gen > 1<<32 || len(row.Samples) == 0 {
			continue
		}
		results++
		tokens += (row.Prompt + row.Gen) * int64(len(row.Samples))
	}
	return results, tokens
}
