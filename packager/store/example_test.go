package store_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

func ExampleStore_Install() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	m := &packager.Manifest{
		Schema: packager.Schema, Flavour: "hrx", ID: "3092596", EntryPoints: map[string]string{"1bit": "1bit"},
		Files: []packager.File{{Path: "1bit", Type: packager.TypeFile, Mode: 0o755, Size: 10, SHA256: "a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf"}},
	}
	var archive bytes.Buffer
	content := func(*packager.File) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("#!/bin/sh\n")), nil
	}
	if err := packager.WriteArchive(ctx, &archive, m, content, packager.ArchiveOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	name := filepath.Join(dir, "package.tar.zst")
	if err := os.WriteFile(name, archive.Bytes(), 0o644); err != nil {
		fmt.Println(err)
		return
	}

	s := store.Open(filepath.Join(dir, "share"), filepath.Join(dir, "state"))
	p, already, err := s.Install(ctx, name, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Name, p.State, already)
	if err := s.Remove(ctx, p, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(os.RemoveAll(dir))
	// Output:
	// hrx-3092596 ok false
	// <nil>
}
