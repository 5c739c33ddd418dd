// Package incident writes down how a service ended: what its log, systemd, the kernel and the host say of it, what
// each slot was doing, which package it ran from and what else used the GPU.
//
// Nouns:
//
//   - Evidence is what was gathered about one unit; Gather looks at the host, the journal and GitHub Actions for it.
//   - A Report is what a person, or an issue, should know of one end. Analyse makes it of the evidence alone, so that
//     the same evidence gives the same report on any day and any machine; Markdown shows it.
//   - A run is one life of the unit, told by its invocation; a server is one llama-server within it, for a front end may
//     start several.
//   - An Ending is a bad end of a run, or of a server that the main process outlived. A stop that was asked for and went
//     well is none.
//   - A Signature is a few words that are the same for every end of one kind.
//   - A Shape is what it takes to run the service like that again; Plan makes an acceptance plan of it.
//
// Analyse reads a journal so:
//
//	entries ─> runs ─┬─> marks    what systemd says: exit, result, restart, OOM, timeouts, core dumps
//	                 └─> lines ─> servers ─> slots and tasks, the NaN guard, last words, backtrace
//	marks + servers ─> endings ─> the last bad one is the report's, the others are listed
//
// On disk an incident is a folder: incident.md and incident.json for people and machines, and below raw the evidence, of
// which the report can be made again.
//
// Guarantees: the log of an engine holds what its users write, so words alone are no event. A guard's line must carry the
// time that its server's other lines do, a server that says it stops must not go on, and what is read of a start must
// come before the first task. What part of the log is not there is said, and nothing is concluded from its silence.
// Nothing that came from elsewhere can act as markup, call people or steer a terminal. Secrets are masked when the
// evidence is gathered.
package incident
