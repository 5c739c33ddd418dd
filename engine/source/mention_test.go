package source

import "testing"

func TestMentionUndoes(t *testing.T) {
	const id = "908c0e2407aabbccddeeff00112233445566778a"
	const title = "ggml : close the race between decode and split (#123)"
	for message, want := range map[string]bool{
		"Revert 908c0e2407":                                                          true,
		"out\n\nThis reverts " + id + ".":                                            true,
		"out\n\nThis reverts commit `908c0e2407`":                                    true,
		"out\n\nThis reverts commit 908C0E2407.":                                     true,
		"out\n\nit reverts commits 908c0e2407..HEAD":                                 true,
		"Back out 908c0e2407":                                                        true,
		"backout: of 908c0e2":                                                        true,
		"fixes what 908c0e2407 broke":                                                false,
		"Revert 908c0e":                                                              false,
		"Revert 908c0e3407":                                                          false,
		"revert: ggml : close the race between decode and split":                     true,
		"ggml : revert GGML : Close the race\nbetween decode and split":              true,
		`[release] Revert "ggml : close the race between decode and split"`:          true,
		"Revert \"ggml : close the race between dec…\" (#9)\n\nReverts org/repo#123": true,
		"Several\n\n* Revert \"ggml : close the race between decode and split\" (#9)\n* other": true,
		"Reverts org/repo#123":                   true,
		"Reverts #1234":                          false,
		"Revert pull request #123":               true,
		"irrevert 908c0e2407":                    false,
		"Reland it\n\n> This reverts 908c0e2407": false,
		"Revert it\n\nThis reverts commit 1234567, reversing\nchanges made to 908c0e2407.": false,
		"Revert it, reversing\nchanges made to 908c0e2407.":                                true,
	} {
		m := readMention(&commit{message: message})
		if got := m.undoes(id, title) || m.undoesTitle(title); got != want {
			t.Errorf("%q: %v", message, got)
		}
	}
	for _, c := range []struct {
		message, title string
		want           bool
	}{
		{"revert the fix", "fix", true},
		{"revert the fixture", "fix", false},
		{"revert the prefix", "fix", false},
		{"revert this, the prefix, and that fix", "fix", true},
		{"revert nothing", "", false},
		{"revert nothing", "(#1)", false},
		{`Revert "bad thing in the kernel"`, `Revert "bad thing in the kernel"`, true},
		{`revert "bad thing in another place"`, `Revert "bad thing in the kernel"`, false},
		{"revert äöüäöüäöüäöü", "äöüäöüäöüäöüäöü", true},
	} {
		if got := readMention(&commit{message: c.message}).undoesTitle(c.title); got != c.want {
			t.Errorf("%q of %q: %v", c.message, c.title, got)
		}
	}
}
