package realengine

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestParseSources(t *testing.T) {
	main := []string{"main"}
	for _, test := range []struct {
		name, text string
		parse      func([]byte) []source
		want       []source
	}{
		{"one line", "deb http://m.example/debian bookworm main contrib # all\n", parseSourceList,
			[]source{{"http://m.example/debian", "bookworm", []string{"main", "contrib"}}}},
		{"options", "deb [ arch=amd64 signed-by=/k.gpg ]\thttp://m.example/debian sid main", parseSourceList,
			[]source{{"http://m.example/debian", "sid", main}}},
		{"not ours", "# deb http://a b main\ndeb-src http://a b main\ndebug http://a b main\ndeb\ndeb [x http://a b main\n",
			parseSourceList, nil},
		{"flat", "deb http://a ./\n", parseSourceList, []source{{"http://a", "./", []string{}}}},
		{"stanzas", "# x\nTypes: deb deb-src\nURIs: http://a http://b\nSuites: s\n t\nComponents: main\n" +
			"Signed-By:\n -----BEGIN\n .\n URIs: http://no\n\n\nTypes: deb\nEnabled: no\nURIs: http://c\nSuites: s\n", parseSourceStanzas,
			[]source{{"http://a", "s", main}, {"http://a", "t", main}, {"http://b", "s", main}, {"http://b", "t", main}}},
		{"source stanza", "Types: deb-src\nURIs: http://a\nSuites: s\nComponents: main\n", parseSourceStanzas, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.parse([]byte(test.text)), cmp.AllowUnexported(source{})); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}

const debianSources = `Types: deb
URIs: http://m.example/debian/
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://m.example/debian-security
Suites: bookworm-security
Components: main
`

func TestArchives(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	debian := file("ID=debian\nVERSION_CODENAME=bookworm\nPRETTY_NAME=\"Debian 12\"\n")
	ubuntu := file("ID=ubuntu\nVERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n")
	debianSuites := []string{"sid", "testing", "stable-backports", "stable", "bookworm-backports", "bookworm"}
	type want struct {
		uri    string
		suites []string
	}
	for _, test := range []struct {
		name, mirror string
		root         fstest.MapFS
		want         []want
	}{
		{"debian", "", fstest.MapFS{
			"etc/os-release":                           debian,
			"etc/apt/sources.list.d/debian.sources":    file(debianSources),
			"etc/apt/sources.list.d/vendor.list":       file("deb http://v.example/apt vendor-bookworm main\n"),
			"etc/apt/sources.list.d/borrowed.list":     file("deb http://b.example/node bookworm main\n"),
			"etc/apt/sources.list.d/old.list.disabled": file("deb http://o.example/debian bookworm main\n"),
		}, []want{{"http://b.example/node", debianSuites}, {"http://m.example/debian", debianSuites}}},
		{"mirror of choice", "http://c.example/debian", fstest.MapFS{"etc/os-release": debian},
			[]want{{"http://c.example/debian", debianSuites}}},
		{"mirror of choice on ubuntu", "http://c.example/debian", fstest.MapFS{"etc/os-release": ubuntu},
			[]want{{"http://c.example/debian", debianSuites[:4]}}},
		{"ubuntu", "", fstest.MapFS{
			"etc/os-release":       ubuntu,
			"etc/apt/sources.list": file("deb http://u.example/ubuntu noble main universe\ndeb http://s.example/ubuntu noble-security main\n"),
			"usr/share/distro-info/ubuntu.csv": file("version,codename,series,created,release,eol\n" +
				"22.04 LTS,Jammy,jammy,2021-10-14,2022-04-21,2027-06-01\n24.04 LTS,Noble,noble,2023-10-12,2024-04-25,2029-05-31\n" +
				"25.10,Questing,questing,2025-04-17,2025-10-09,2026-07-09\n"),
		}, []want{{"http://u.example/ubuntu", []string{"devel", "questing", "noble"}}}},
		{"ubuntu without a table", "", fstest.MapFS{
			"etc/os-release":       ubuntu,
			"etc/apt/sources.list": file("deb http://u.example/ubuntu noble main\n"),
		}, []want{{"http://u.example/ubuntu", []string{"devel", "resolute", "noble"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := archives(test.root, test.mirror)
			if err != nil {
				t.Fatal(err)
			}
			var got []want
			for _, a := range found {
				got = append(got, want{a.uri, a.suites})
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("archives (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArchivesNone(t *testing.T) {
	for name, root := range map[string]fstest.MapFS{
		"no apt": {"etc/os-release": {Data: []byte("ID=arch\n")}},
		"only vendors": {
			"etc/os-release":       {Data: []byte("ID=debian\nVERSION_CODENAME=bookworm\n")},
			"etc/apt/sources.list": {Data: []byte("deb http://v.example bookworm-vendor main\n")},
		},
	} {
		if found, err := archives(root, ""); err == nil {
			t.Errorf("%s: archives %v, want an error", name, found)
		}
	}
}

func FuzzParseSources(f *testing.F) {
	f.Add([]byte(debianSources))
	f.Add([]byte("deb [a=b] http://m.example/debian sid main\n"))
	f.Add([]byte(" continued: without a start\nTypes: deb\n x\n:\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, s := range append(parseSourceList(text), parseSourceStanzas(text)...) {
			if s.uri == "" || s.suite == "" {
				t.Errorf("source %+v without address or suite", s)
			}
		}
	})
}
