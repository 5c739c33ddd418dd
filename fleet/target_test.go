package fleet

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ref(name string) PackageRef {
	if name == "" {
		return PackageRef{}
	}
	return PackageRef{"hrx-" + name, "sha256:" + name, "/d/1bit-hrx-" + name}
}

// ourFile is a file of a switch to pkg from a unit that served before.
func ourFile(pkg, before, rollback string) *DropIn {
	return &DropIn{
		Unit: "llm.service", Package: ref(pkg), ServedBefore: ref(before), Rollback: rollback, Generation: 4, Act: actSwitch,
		Environment: []Assignment{{serverVariable, ref(pkg).Path + "/bin/llama-server"}},
	}
}

// resultFile is what a rollback from one package put in place.
func resultFile(pkg, from, before, rollback string) *DropIn {
	d := ourFile(pkg, before, rollback)
	d.RolledBackFrom, d.Act = ref(from), actRollback
	return d
}

func TestRollbackTarget(t *testing.T) {
	for _, tt := range []struct {
		name string
		past past
		next string
		want target
	}{
		{"first switch, serving", past{base: ref("a"), serving: ref("a")}, "b", target{ref("a"), true}},
		{"first switch, stopped", past{base: ref("a")}, "b", target{remove: true}},
		{"first switch, something else runs", past{base: ref("a"), serving: ref("x")}, "b", target{remove: true}},
		{"first switch, no package", past{}, "b", target{remove: true}},

		{"armed and seen serving", past{active: ourFile("b", "a", rollbackRemove), base: ref("a"), serving: ref("b")}, "c", target{ref: ref("b")}},
		{"armed, stopped, journal saw it", past{active: ourFile("b", "a", rollbackRemove), base: ref("a"), served: true}, "c", target{ref: ref("b")}},
		{"armed and never served, the first one runs", past{active: ourFile("b", "a", rollbackRemove), base: ref("a"), serving: ref("a")}, "c", target{ref("a"), true}},
		{"armed and never served, nothing runs", past{active: ourFile("b", "a", rollbackRemove), base: ref("a")}, "c", target{ref("a"), true}},
		{"armed and never served, an older one of ours runs",
			past{active: ourFile("c", "b", rollbackExchange), prev: resultFile("b", "c", "a", rollbackRemove), base: ref("a"), serving: ref("b")}, "d", target{ref: ref("b")}},
		{"armed and never served, nothing runs, an older one of ours served",
			past{active: ourFile("c", "b", rollbackExchange), prev: resultFile("b", "c", "a", rollbackRemove), base: ref("a")}, "d", target{ref: ref("b")}},
		{"the journal remembers, but another one runs",
			past{active: ourFile("c", "b", rollbackExchange), base: ref("a"), serving: ref("b"), served: true}, "d", target{ref: ref("b")}},

		{"after a rollback, stopped", past{active: resultFile("b", "c", "a", rollbackRemove), base: ref("a")}, "d", target{ref: ref("b")}},

		{"back to what runs, whose own past is known",
			past{active: ourFile("c", "b", rollbackExchange), prev: resultFile("b", "c", "z", rollbackExchange), base: ref("a"), serving: ref("b")}, "b", target{ref: ref("z")}},
		{"back to what runs, which was the first of ours",
			past{active: ourFile("c", "b", rollbackExchange), prev: resultFile("b", "c", "a", rollbackRemove), base: ref("a"), serving: ref("b")}, "b", target{ref("a"), true}},
		{"back to what the unit says itself",
			past{active: ourFile("b", "a", rollbackRemove), base: ref("a"), serving: ref("a")}, "a", target{ref("a"), true}},
		{"what served before is blocked since",
			past{active: ourFile("c", "b", rollbackExchange), prev: resultFile("b", "c", "a", rollbackRemove), base: ref("a"), blocks: []Block{{"hrx-b", "sha256:b", "bad"}}}, "d", target{ref("a"), true}},
		{"rolled back from and still running",
			past{active: resultFile("b", "c", "a", rollbackRemove), base: ref("a"), serving: ref("c"), blocks: []Block{{"hrx-c", "sha256:c", "bad"}}}, "d", target{ref: ref("b")}},
		{"back to what runs, past lost", past{active: ourFile("c", "b", rollbackExchange), base: ref("a"), serving: ref("b")}, "b", target{remove: true}},
	} {
		if got := tt.past.target(ref(tt.next)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestRollbackFile(t *testing.T) {
	next := ourFile("d", "b", rollbackExchange)
	next.Generation, next.By, next.At = 5, "ai", time.Unix(9, 0)
	next.Blocks = []Block{{"hrx-x", "", "bad"}}
	rewrite := func(env []Assignment, to PackageRef) ([]Assignment, error) {
		return []Assignment{{serverVariable, to.Path + "/moved"}}, nil
	}
	want := func(env string, before, rollback string) *DropIn {
		return &DropIn{
			Unit: "llm.service", Package: ref("b"), Act: actRollback, Generation: 5, By: "ai", At: time.Unix(9, 0),
			Environment: []Assignment{{serverVariable, env}}, RolledBackFrom: ref("d"),
			ServedBefore: ref(before), Rollback: rollback,
			Blocks: []Block{{"hrx-x", "", "bad"}, {"hrx-d", "sha256:d", blockedByRollback}},
		}
	}
	for _, tt := range []struct {
		name string
		past past
		want *DropIn
	}{
		{"of the active file", past{active: ourFile("b", "a", rollbackRemove)}, want("/d/1bit-hrx-b/bin/llama-server", "a", rollbackRemove)},
		{"of the file before", past{active: ourFile("c", "b", rollbackExchange), prev: resultFile("b", "c", "z", rollbackExchange)},
			want("/d/1bit-hrx-b/bin/llama-server", "z", rollbackExchange)},
		{"of no file", past{active: ourFile("c", "x", rollbackExchange)}, want("/d/1bit-hrx-b/moved", "", rollbackRemove)},
	} {
		got, err := tt.past.file(ref("b"), next, rewrite)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	bad := errors.New("it has none")
	_, err := past{active: ourFile("c", "x", rollbackExchange)}.file(ref("b"), next, func([]Assignment, PackageRef) ([]Assignment, error) { return nil, bad })
	if !errors.Is(err, bad) {
		t.Errorf("a package without the program: %v", err)
	}
}

func TestBlocks(t *testing.T) {
	d := &DropIn{}
	d.block(ref("a"), "one")
	d.block(ref("b"), "two")
	d.block(ref("a"), "three")
	want := []Block{{"hrx-b", "sha256:b", "two"}, {"hrx-a", "sha256:a", "three"}}
	if diff := cmp.Diff(want, d.Blocks); diff != "" {
		t.Error(diff)
	}
	if b, ok := blocked(d.Blocks, PackageRef{Name: "hrx-a"}); !ok || b.Reason != "three" {
		t.Errorf("by name alone: %v %v", b, ok)
	}
	if _, ok := blocked(d.Blocks, PackageRef{Name: "hrx-a", Digest: "sha256:other"}); ok {
		t.Error("another build of the same name is blocked")
	}
}
