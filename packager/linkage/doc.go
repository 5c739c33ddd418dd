// Package linkage tells what the dynamic loader would do with a package: which
// libraries its programs find inside, what they want of the host, and whether
// this host has it. Nothing is ever run, and no library is trusted: the bytes
// may come from anywhere.
//
// # Words
//
//   - An [Object] is an ELF file, or a file of GPU code, with what it says of
//     itself.
//   - A need is a library's name that an object asks for.
//   - A need is met inside the package, by the C runtime that every glibc host
//     has ([Runtime]), or by the host's libraries that the manifest names.
//
// # From files to an answer
//
//	files ── Inspect ──▶ objects ── Resolve ──▶ Linkage: into the manifest when a package is made
//	                        │
//	                        └── Host.Check ──▶ what this host lacks: when an installed package is verified
//	manifest ── Host.Missing ──▶ the same, from the manifest alone: at every switch
//
// # How the loader looks
//
// As glibc's does (man 8 ld.so): what is loaded already, by the names it was
// asked for and its soname; the RPATH of the object and of those that loaded
// it, unless it has a RUNPATH; its RUNPATH; then, on a host, the cache
// /etc/ld.so.cache and the default folders. LD_LIBRARY_PATH is the environment's
// and no part of a package; neither is what programs open while they run.
package linkage
