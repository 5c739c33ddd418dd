// Package engine knows what an inference engine is: the llama-server process,
// its HTTP interface, its log lines and the shapes in which it goes wrong.
//
// Nouns:
//
//   - Client speaks the HTTP interface of one llama-server, or of another
//     server with the OpenAI-compatible one. It never retries and never follows
//     a redirect: a retry turns a fault into a success. It keeps a connection
//     only where it is told to, and where a stale one cannot look like a fault.
//   - Answer is one reply with its raw bytes. Answer.Faults says everything
//     that is wrong with it, judged on the bytes that came over the wire,
//     since a JSON decoder repairs invalid UTF-8 in silence.
//   - LogEvent is what one line of the server log says. Lines come in several
//     generations of spelling; free text in them (prompts, model names) never
//     makes an event.
//   - LogReader cuts a growing log into lines and reads them; Joiner makes of
//     their events one Task for each request's stay on a slot; MatchReplies says
//     which of them made which reply; Placement is where the model came to lie.
//   - Process is a child in a process group of its own that cannot outlive us,
//     and Server is the one that runs llama-server.
//   - Probe asks a server the same greedy question twice and is content only
//     when both answers are sound and equal.
//
// A NaN in the logits shows, on an engine without a guard, only as a null
// log-probability: the text may be fluent, the status is 200 and the log is
// silent. So every check here asks for log-probabilities and reads every token.
package engine
