// Package detect finds the faces of a fault: the ways in which one shows, on the wire, in the server's log, in the
// kernel's log and in how processes end.
//
// Nouns:
//
//   - A face is one way in which a fault shows, in one small file of its own: its name, what it needs to be seen at
//     all, and a function from something that happened to findings. [Faces] lists them.
//   - A [Finding] is one occurrence of a face. Its [Grade] says whether it is a fault, only a warning, or the sign of a
//     cause outside of the engine.
//   - A [Setting] of a face is the plan's: gate (its faults fail the run), report (they are told and decide nothing) or
//     off (nothing is looked for, and the face stands under "not tested").
//   - A [Set] holds the faces of one server life with their counters, and is told everything that happens in it.
//   - [Sees] says whether one request could have shown a face at all. A face is only excluded on those.
//
// What happened is one of the types Exchange, engine.LogEvent, KernelEvent, Exit, Relisten, Placement, Startup, Pair,
// Comparison and Memory. A face says with the type of its function which of them it looks at.
//
// One event often shows in several faces: a guard line in the log, a null on the wire, an abort, the connections that
// it cut off. Every face tells what it saw; joining them into one fault is the verdict's business.
//
// Shapes of text (one character over and over, U+FFFD, nothing but token id 0, no text) are warnings: healthy models
// have them too. They become a fault only where an answer that is known, a sentinel's, does not have them.
package detect
