// Package realengine gives tests and the demo a real engine: Debian's llama.cpp, fetched into a cache folder
// of the checkout and laid out as the engine's releases are, and a tiny model for it to serve.
//
// # The tree
//
//	1bit                                   front end: `1bit serve ARGS…` starts llama-server as its child
//	hrx/llama/bin/{llama-server,llama-bench,llama-perplexity,test-backend-ops}
//	hrx/llama/libexec/…                    the programs themselves
//	hrx/llama/lib/…                        every library they need
//	hrx/llama/lib/runtime/…                of those the C runtime: loader, libc, libstdc++, …
//	hrx/llama/lib/backends/…               one CPU backend a processor generation
//
// The files in bin are small shell launchers. They find the tree from their own place, choose the CPU backend
// by the flags of the processor they run on, and start the program through the tree's own loader, so the tree
// can be moved, copied and packaged, and runs on distributions older than its C library.
//
// # Where it comes from
//
// Fetch reads the archive's address from the machine's own apt sources (or from ONEBIT_DEBIAN_MIRROR) and
// runs apt with configuration, lists and cache of its own: nothing of the machine changes and root is not
// needed. Suites are tried from the newest on; one is taken when its llama-server has started and answered a
// completion here. Debian's archive keys come along (keyrings/) for machines that lack them. An expired release
// file is accepted, since a mirror that lags costs a test nothing but age; a wrong signature never is.
//
// # The cache
//
//	<cache>/lock                 held while fetching; the kernel frees it when the holder dies
//	<cache>/fetch-*              work in progress, swept by the next holder of the lock
//	<cache>/<arch>-<revision>/   tree/, models/, engine.json: moved here whole by one rename
//
// The revision is a digest of what this package puts into the tree, so a change of a launcher or of the model
// makes a new entry and leaves the old one to whoever runs it. Delete the folder to get a newer engine.
//
// # The models
//
// WriteModel writes a 433 kB GGUF that loads in milliseconds and answers every prompt differently in printable
// ASCII without ending early, and twins of it that carry NaN: see [WriteModel].
package realengine
