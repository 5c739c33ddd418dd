package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/1bit-systems/pkg/acceptance/answers"
	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
)

// An Audit compares the raw answers of a run with its ledger. A verdict needs
// none of them; an audit says whether the ledger told the truth about them.
type Audit struct {
	Requests  int          `json:"requests"`  // of the ledger, that had an answer
	Answers   int          `json:"answers"`   // of those, stored
	Missing   []AuditPlace `json:"missing"`   // not stored
	Different []AuditPlace `json:"different"` // stored with other bytes than the ledger has the digest of
	Overseen  []AuditPlace `json:"overseen"`  // with a face of fault that the ledger does not have
	Files     []AuditFile  `json:"files"`     // of lives that are over, which are not as the ledger has the digest of them
	Damage    string       `json:"damage,omitempty"`
}

// An AuditPlace names one answer, and what is wrong with it.
type AuditPlace struct {
	Arm     int    `json:"arm"`
	Request int    `json:"request"`
	What    string `json:"what"`
}

// An AuditFile names a file of a life, and what is wrong with it.
type AuditFile struct {
	Arm  int    `json:"arm"`
	Name string `json:"name"` // below the life's folder
	What string `json:"what"`
}

// OK tells whether every answer is there, as the ledger has it, and shows
// nothing that the ledger does not, and whether the files of the lives are those
// that the ledger has the digests of.
func (a *Audit) OK() bool {
	return a.Damage == "" && len(a.Missing)+len(a.Different)+len(a.Overseen)+len(a.Files) == 0
}

// mostPlaces bounds each list of an audit.
const mostPlaces = 1000

// AuditDir reads every stored answer of a run, compares its bytes with the
// digest in the ledger, and shows it to the detectors once more. Faces that the
// plan has switched off are looked at too. So are the digests of the files of
// every life that is over. progress, if not nil, is told the
// number of answers so far. The error is for a folder without a readable run.
func AuditDir(ctx context.Context, dir string, progress func(n int)) (*Audit, error) {
	f, err := openInput(filepath.Join(dir, LedgerName))
	if err != nil {
		return nil, fmt.Errorf("audit %s: it is not the evidence of a run: %w", dir, err)
	}
	defer f.Close()
	if progress == nil {
		progress = func(int) {}
	}
	w := &auditing{dir: dir, progress: progress, audit: &Audit{Missing: []AuditPlace{}, Different: []AuditPlace{}, Overseen: []AuditPlace{}, Files: []AuditFile{}}}
	defer w.closeLife()
	summary, err := scanLedger(f, func(r *record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return w.take(ctx, r)
	})
	if err == nil {
		err = w.endLife()
	}
	if err != nil {
		return nil, fmt.Errorf("audit %s: %w", dir, err)
	}
	w.audit.Damage = summary.Damage
	return w.audit, nil
}

// RawAnswer gives the bytes that came as the answer to one request of a run.
// The error wraps answers.ErrNoAnswer or fs.ErrNotExist if there are none.
func RawAnswer(dir string, arm, request int) ([]byte, error) {
	r, err := answers.Open(filepath.Join(ArmDir(dir, arm), AnswersName))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	raw, err := r.Get(request)
	if errors.Is(err, answers.ErrNoAnswer) {
		return nil, fmt.Errorf("arm %d: %w: %w", arm, fs.ErrNotExist, err)
	}
	return raw, err
}

// auditing is an audit in the making.
type auditing struct {
	dir      string
	audit    *Audit
	progress func(int)

	arm    int
	stored *answers.Reader // of the life; nil: it has none
	faces  *detect.Set
	wait   []requestRecord // whose answers were not looked at yet
}

// lookBehind is how many requests are read ahead of the one that is looked at,
// so that the nonces of all that were in flight with it are known.
const lookBehind = 2048

func (w *auditing) take(ctx context.Context, r *record) error {
	switch r.Kind {
	case recordStart:
		s, err := decode[startRecord](r.line)
		if err != nil {
			return err
		}
		return w.beginLife(s.Arm)
	case recordEnd:
		e, err := decode[endRecord](r.line)
		if err != nil {
			return err
		}
		return w.files(ctx, e)
	case recordRequest:
		if w.faces == nil || r.request == nil {
			return nil
		}
		w.faces.Sent(r.request.ID, r.request.Nonce)
		w.wait = append(w.wait, *r.request)
		if len(w.wait) > lookBehind {
			next := w.wait[0]
			w.wait = slices.Delete(w.wait, 0, 1)
			return w.look(&next)
		}
	}
	return nil
}

func (w *auditing) beginLife(arm int) error {
	if err := w.endLife(); err != nil {
		return err
	}
	w.arm = arm
	settings := map[string]string{}
	for _, f := range detect.Faces() {
		settings[f.Name] = string(detect.Report)
	}
	var err error
	if w.faces, err = detect.New(settings); err != nil {
		return err
	}
	w.stored, err = answers.Open(filepath.Join(ArmDir(w.dir, arm), AnswersName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// files compares the files of a life that is over with their digests, which
// whatever stands behind the last answer changes too.
func (w *auditing) files(ctx context.Context, e *endRecord) error {
	for _, f := range []struct{ name, want string }{
		{ServerLogName, e.ServerLogSHA256}, {SamplesName, e.SamplesSHA256}, {AnswersName, e.AnswersSHA256},
	} {
		got, err := sumEvidence(ctx, filepath.Join(ArmDir(w.dir, w.arm), f.name))
		what := ""
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			what = err.Error()
		case got == f.want, got == "" && f.want == sumOf(nil):
			continue
		case got == "":
			what = "it is gone"
		case f.want == "":
			what = "the ledger has no digest of it"
		default:
			what = "its bytes are not those that the ledger has the digest of"
		}
		if len(w.audit.Files) < mostPlaces {
			w.audit.Files = append(w.audit.Files, AuditFile{w.arm, f.name, what})
		}
	}
	return nil
}

func (w *auditing) endLife() error {
	for i := range w.wait {
		if err := w.look(&w.wait[i]); err != nil {
			return err
		}
	}
	w.wait = w.wait[:0]
	w.closeLife()
	return nil
}

func (w *auditing) closeLife() {
	if w.stored != nil {
		w.stored.Close()
		w.stored = nil
	}
}

// look compares one answer with its record.
func (w *auditing) look(rec *requestRecord) error {
	if rec.Outcome != outcomeAnswered {
		return nil
	}
	w.audit.Requests++
	var raw []byte
	err := error(answers.ErrNoAnswer)
	if w.stored != nil {
		raw, err = w.stored.Get(rec.ID)
	}
	if err != nil {
		w.add(&w.audit.Missing, rec, err.Error())
		return nil
	}
	w.audit.Answers++
	w.progress(w.audit.Answers)
	if sumOf(raw) != rec.SHA256 {
		w.add(&w.audit.Different, rec, "its bytes are not those that the ledger has the digest of")
		return nil
	}
	x := &detect.Exchange{ID: rec.ID, Kind: rec.Kind, NPredict: rec.NPredict, ProbsAsked: rec.ProbsAsked, Answer: engine.ParseAnswer(rec.Status, raw, rec.ProbsAsked)}
	for _, f := range w.faces.Exchange(x) {
		known := slices.ContainsFunc(rec.Findings, func(k detect.Finding) bool { return k.Face == f.Face })
		if f.Grade == detect.Fault && !known {
			w.add(&w.audit.Overseen, rec, f.Face+": "+f.Detail)
		}
	}
	return nil
}

func (w *auditing) add(list *[]AuditPlace, rec *requestRecord, what string) {
	if len(*list) < mostPlaces {
		*list = append(*list, AuditPlace{w.arm, rec.ID, what})
	}
}
