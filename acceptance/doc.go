// Package acceptance soaks a package and judges it: it keeps one server of the
// package under load beside a busy neighbour, watches every face that a fault
// can have, and says what the evidence supports, with an exact bound.
//
// Nouns:
//
//   - A [Plan] is a YAML file that says what will be done and what counts. It
//     is fixed, resolved (which package, model and runner, by their digests)
//     and hashed before the first request.
//   - An arm is one server life. It ends clean, with a fault, invalid (a named
//     outside cause: no evidence either way) or out of regime (the condition
//     to be tested was not met). Fault comes first: an arm that shows a fault
//     and then dies, or was out of regime, has a fault.
//   - A face is a way in which a fault shows: a guard line in the log, a null
//     log-probability, broken bytes, a status, a hang, another request's nonce,
//     an exit. A face can be excluded only on the requests that it could see.
//   - The ledger is the append-only, hash-chained record of the run.
//   - The [Verdict] is a pure function of the plan and the ledger: pass, fail or
//     inconclusive. [JudgeDir] computes it from an evidence folder at any time.
//
// The load is a closed loop: every worker sends its next request when it has
// its answer. Each prompt begins with a nonce of its own, so that no slot is
// chosen by the beginning of a prompt and a nonce in a foreign answer tells a
// leak. That the load reached the state it was meant to test is shown by the
// server's own log: every slot launched often enough, no selection by prefix,
// and all slots busy at once for the share of the time that the plan asks for.
// One request at a time uses every slot in turn and is never all-busy; it is no
// evidence.
//
// The evidence folder:
//
//	plan.yaml         the plan, byte for byte
//	plan.json         the resolved plan; its SHA-256 is plan_sha256
//	ledger.jsonl      what happened, one record a line
//	host-before.json  the host's state; host-after.json the same afterwards
//	server.log        what the server wrote
//	neighbour.log     what the neighbour wrote; neighbour.jsonl its results
//	samples.jsonl     memory and load every few seconds
//	faults/           the raw bytes of answers that had a fault
//	verdict.json      the verdict when the run ended
//
// Guarantees: the runner retries nothing; the first fault reaches the disk
// before anything else happens and ends the arm; when the runner is killed, no
// record is lost and server and neighbour end with it; a changed, torn or
// shortened ledger never passes.
package acceptance
