package acceptance

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// What is read by hand is what encoding/json reads, for any values.
func TestRequestIsReadByHand(t *testing.T) {
	byHand := 0
	check := func(r requestRecord) bool {
		r.Findings = nil
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var hand, want requestRecord
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if readRequest(raw, &hand) {
			byHand++
			return cmp.Equal(want, hand)
		}
		var both requestRecord
		return decodeRequest(raw, &both) == nil && cmp.Equal(want, both)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 3000}); err != nil {
		t.Error(err)
	}
	plain := func(a, b, c int32, d int64, probs bool, slot uint8) bool {
		before := byHand
		ok := check(requestRecord{
			ID: int(a), Worker: int(b), Nonce: "0123456789abcdef", PromptTarget: int(c), ProbsAsked: probs,
			IntendedUS: d >> 8, EndUS: -(d >> 9), Outcome: outcomeAnswered, Slot: int(slot) - 1,
		})
		return ok && byHand == before+1
	}
	if err := quick.Check(plain, nil); err != nil {
		t.Error(err)
	}
}

// A field that somebody adds is read by hand as well, or verdicts get slow.
func TestEveryFieldOfARequestIsReadByHand(t *testing.T) {
	var r requestRecord
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i) - 3)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("text " + v.Type().Field(i).Name)
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got requestRecord
	if !readRequest(raw, &got) || !cmp.Equal(r, got) {
		t.Errorf("not read by hand: %s\n%s", raw, cmp.Diff(r, got))
	}
}

// Whatever is not plain goes the long way, with the same result.
func TestRequestThatIsNotPlain(t *testing.T) {
	for _, raw := range []string{
		`{"id":1,"slot":-1,"error":"a \"quoted\" word"}`, `{"id":1,"error":"ü"}`, `{"id":1, "slot":2}`, `{"slot":2,"id":1}`,
		`{"id":1,"id":2}`, `{"id":1,"new":3}`, `{}`, `{"ID":4}`, `{"id":null}`, `{"id":-0}`, `{"id":1e3}`, `{"id":01}`, `{"id":1.5}`,
		`{"id":99999999999999999999}`, `{"probs_asked":1}`, `{"probs_asked":truely}`, `{"nonce":"a`, `{"nonce":}`, `{"id":}`, `{"id":-}`, `{"id":1`,
		`{"id":1}x`, `{"id":1}}`, ``, `{`, `null`, `[]`, `{"id":999999999999999999}`, `{"findings":[{"face":"nan","grade":"fault","detail":"d"}]}`,
		"{\"nonce\":\"\xff\"}", "{\"nonce\":\"\x01\"}", `{"nonce":"a\u0041"}`,
	} {
		checkDecode(t, []byte(raw))
	}
	var r requestRecord
	if err := decodeRequest([]byte(`{"id":3,"findings":[{"face":"nan","grade":"fault","detail":"d"}],"error":"e"}`), &r); err != nil ||
		r.ID != 3 || r.Error != "e" || len(r.Findings) != 1 || r.Findings[0].Grade != detect.Fault {
		t.Errorf("%+v, %v", r, err)
	}
}

func checkDecode(t *testing.T, raw []byte) {
	t.Helper()
	var got, want requestRecord
	err, wantErr := decodeRequest(raw, &got), json.Unmarshal(raw, &want)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%s: %v, encoding/json says %v", raw, err, wantErr)
	} else if err == nil && !cmp.Equal(want, got) {
		t.Errorf("%s:\n%s", raw, cmp.Diff(want, got))
	}
}

func FuzzDecodeRequest(f *testing.F) {
	raw, err := json.Marshal(requestRecord{ID: 5, Worker: 2, Nonce: "00ff", ProbsAsked: true, EndUS: 77, Outcome: outcomeAnswered, Slot: -1, Kind: kindSentinel})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(strings.Replace(string(raw), `"id":5`, `"id":-5`, 1)))
	f.Add([]byte(`{"id":1,"findings":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) { checkDecode(t, b) })
}
