// Package build makes a package out of a build tree and a recipe.
//
// # Recipe
//
// A recipe is one YAML document. Every key is known; a typing error is
// answered with the file, the line, the key and what to do.
//
//	flavour: hrx                  # required; with the id it names the package
//	include:                      # required; what of the tree to take, by path
//	  - 1bit                      #   a program or file
//	  - hrx                       #   a folder with all that is in it
//	entry_points:                 # required; name: path of an executable file
//	  1bit: 1bit
//	  llama-server: hrx/llama/bin/llama-server
//	front_door: [serve, bench]    # verbs that are handed to entry point 1bit
//	components:                   # required; the sources and their commits
//	  engine:
//	    commit: 3092596c1a…       #   7 to 64 hex digits
//	    url: https://example.org/engine.git
//	  llama.cpp:
//	    commit: 00adc2b
//	requires:                     # what the host must have
//	  - path: /opt/rocm-therock
//	  - device: /dev/kfd
//	  - library: libvulkan.so.1
//	  - kernel_parameter: amdgpu.cwsr_enable
//	    value: "0"
//	fix_runpath: true             # make the files find each other, see below
//	fixes: fixes.yaml             # the registry of fixes, from the recipe's folder
//	require_fixes: ["engine#123"] # do not build without these
//
// "include: [.]" takes the whole tree. A flavour is made of lower-case
// letters, digits, dots and hyphens. A commit is that of the git checkout that
// was given for the component; one that the recipe alone gives was typed by a
// person, and the manifest marks it as declared. The id is the one given, or
// else the first seven digits of the commit of component engine.
//
// The registry of fixes is a list of {id, title, component, commits, off}. For
// each of them the history of the component's checkout is asked whether it is
// carried; package engine/source says what that means. What was asked of git
// is in the manifest, what the built programs print as their commit is only
// compared with it: the manifest does not depend on running anything.
//
// # What may be in a package
//
// Folders, regular files and symbolic links. A link is relative and ends,
// through all other links, at something in the package. A device, socket or
// pipe, a setuid or setgid file, a leftover of another system (._NAME,
// .DS_Store), names that differ only in case or in how a letter is composed,
// that hold control or invisible characters or are not UTF-8 do not build.
// Modes are normalised: 0755 for folders and for files with an execute bit,
// else 0644.
//
// # Libraries
//
// With fix_runpath every ELF file gets a RUNPATH by which it finds what it
// needs inside the package, and libraries that only the build tree has are
// copied beside what needs them (runpath.go). In any case the audit does what
// the loader would do and refuses a package whose needs are not met inside it,
// by the C runtime or by what it requires of its host (audit.go).
//
// # From a tree to a package
//
//	recipe ─▶ pins ─▶ fixes ─▶ collect ─▶ relink ─▶ hash ─▶ audit ─▶ archive ─▶ trial ─▶ publish
//
// The trial unpacks the archive elsewhere with the reader that installs it and
// starts the entry points (trial.go). Nothing that was seen by running them
// goes into the manifest: that is a function of the tree, the recipe, the
// options and the checkouts alone.
//
// While it works a build keeps a folder .1bit-build.*.tmp beside its output,
// locked. It is removed at the end, and by the next build if this one was
// killed.
//
// # What comes out
//
// One archive, 1bit-<flavour>-<id>-linux-<machine>.tar.zst, and where asked
// for packages for dpkg, rpm and pacman of the same name. The same tree and
// recipe give the same bytes, on any machine and at any time; owners, times
// and umask do not show. It appears under its name whole and synced or not at
// all. Building it again over itself changes nothing; if another archive of
// that name is there, the build ends with an error that wraps fs.ErrExist and
// leaves it alone, for a package is never replaced by another of its name.
package build
