// Package packager is the package itself: its manifest and its archive.
//
// # Nouns
//
// A [Manifest] says what a package is: flavour and id (together its name),
// version, components with their pins, entry points, what the host must
// have, and every file with its mode and SHA-256. It is the file
// 1bit-package.json at the package's root. The manifest has exactly one
// spelling, the canonical one that [Manifest.Encode] writes and
// [DecodeManifest] insists on, so that `sha256sum 1bit-package.json` prints
// the digest that is the package's identity, whatever the archive around it.
//
// An archive is a zstd-compressed tar (tar.zst) with one top folder,
// 1bit-<flavour>-<id>, the manifest as the first entry in it and then every
// entry of the manifest in the manifest's order. [Writer] makes it, byte for
// byte the same for the same input; [Reader] takes it apart.
//
// # Reading hostile input
//
// The reader trusts nothing but its limits. The manifest comes first and is
// validated as a whole: names, parents, link targets (resolved through all
// links of the package), sizes, counts. After it the archive may only repeat
// what the manifest says, entry by entry in the same order: a duplicate, an
// extra, a missing, a hard-linked, sparse or special entry is a difference,
// and any difference ends the reading with an error that wraps
// [ErrIntegrity]. What a tar header says beyond that (owners, times, extended
// attributes) is passed over and never applied. The stream is zstd frames to
// its last byte; a skippable frame, which could hold anything, is refused.
// Before archive/tar reads a block, its raw bytes are held to one meaning:
// where that reader is lenient, others may see another archive. [Limits] bound
// what an archive may ask for; they can be raised, and are never asked of what
// is installed. [Reader.Extract] works inside an os.Root that must be empty
// when it starts, writes plain files only into folders that it made itself,
// hashes while it writes and makes links last.
//
// # Modes and times
//
// An archive knows three modes: 0755 for folders and programs, 0644 for other
// files. Installed, the write bits are gone: 0555 and 0444. Every time stamp
// is the manifest's source_date_epoch.
//
// An imported package, a directory that an older script made, has a manifest
// that was computed from the directory. It is marked as imported, carries
// each file's own mode and modification time, and is never read from an
// archive.
package packager

import "errors"

// ErrIntegrity is wrapped by every error about a damaged or hostile archive or
// manifest and by every difference between bytes and digests.
var ErrIntegrity = errors.New("integrity check failed")
