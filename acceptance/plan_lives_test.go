package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Arms take turns, each with what it changes, and lives share no prompt.
func TestLives(t *testing.T) {
	p := testPlan(t, `
server: {flags: [-t, "1"], env: {A: "1", B: "2"}}
load: {requests: 25}
neighbour: {kind: bench}
arms:
  - {name: main, lives: 3, flags: [-fa, "off"], env: {B: "3"}}
  - {name: alone, role: control, lives: 2, neighbour: {kind: none}}
  - {name: one, role: control, parallel: 1, duration: 5m}
  - {name: old, role: baseline, package: hrx-1, ctx: 4096, kv_unified: false, in_flight: 8, neighbour: {kind: memory}}
`)
	var order []string
	lives := p.Lives()
	for i, l := range lives {
		order = append(order, fmt.Sprint(l.Name, l.Life))
		if l.Index != i || p.Arms[l.Arm].Name != l.Name {
			t.Errorf("life %d: %+v", i, l)
		}
	}
	if got := strings.Join(order, " "); got != "main1 alone1 one1 old1 main2 alone2 main3" {
		t.Fatalf("order %s", got)
	}
	first, alone, one, old := lives[0], lives[1], lives[2], lives[3]
	if fmt.Sprint(first.Server.Flags) != "[-t 1 -fa off]" || first.Server.Env["A"]+first.Server.Env["B"] != "13" || p.Server.Env["B"] != "2" {
		t.Errorf("main: %+v", first.Server)
	}
	if first.Neighbour == nil || first.Gates.NeighbourWork != 1 || alone.Neighbour != nil || alone.Gates.NeighbourWork != 0 {
		t.Errorf("neighbours: %+v, %+v", first.Neighbour, alone.Neighbour)
	}
	if one.Server.Parallel != 1 || one.Load.InFlight != 1 || one.Load.Requests != 0 || time.Duration(one.Load.Duration) != 5*time.Minute {
		t.Errorf("one: %+v", one)
	}
	if old.Package != "hrx-1" || old.Server.Ctx != 4096 || *old.Server.KVUnified || old.Load.InFlight != 8 || old.Neighbour.Kind != "memory" || old.Neighbour.GiB != 1 {
		t.Errorf("old: %+v", old)
	}
	if lives[4].FirstPrompt != 25 || lives[6].FirstPrompt != 50 || alone.FirstPrompt != 0 {
		t.Errorf("first prompts %d, %d, %d", lives[4].FirstPrompt, lives[6].FirstPrompt, alone.FirstPrompt)
	}
}
