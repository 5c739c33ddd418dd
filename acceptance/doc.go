// Package acceptance soaks a package and judges it: it keeps servers of the
// package under load beside a busy neighbour, watches every face that a fault
// can have, and says what the evidence supports, with an exact bound.
//
// Nouns:
//
//   - A [Plan] is a YAML file that says what will be done and what counts. It
//     is fixed, resolved (which packages, models and runner, by their digests)
//     and hashed before the first request. [Plan.Lives] are the server lives
//     that it asks for, [Plan.Estimate] says what they can show.
//   - An arm is one condition: a package, flags, a neighbour. Arms of the role
//     candidate count; control and baseline arms are compared with them.
//   - A life is one server from its start to its verified end. It ends clean,
//     with a fault, invalid (a named outside cause: no evidence either way) or
//     out of regime (the condition to be tested was not met). Fault comes
//     first: a life that shows one and then dies, or was out of regime, has a
//     fault. One that is no evidence is made again, and the reason is kept.
//   - A face is a way in which a fault shows: a guard line in the log, a null
//     log-probability, broken bytes, a status, a hang, another request's nonce,
//     an exit. A face can be excluded only on the requests that it could see.
//   - The ledger is the append-only, hash-chained record of the run.
//   - The [Verdict] is a pure function of the plan and the ledger: pass, fail or
//     inconclusive. [JudgeDir] computes it from an evidence folder at any time.
//
// The load is a closed loop, where every worker sends its next request when it
// has its answer, or bursts at intended times. Each prompt begins with a nonce
// of its own, so that no slot is chosen by the beginning of a prompt and a
// nonce in a foreign answer tells a leak. That the load reached the state it
// was meant to test is shown by the server's own log: every slot launched often
// enough, no selection by prefix, and all slots busy at once for the share of
// the time that the plan asks for. One request at a time uses every slot in
// turn and is never all-busy; it is no evidence. Sentinels are fixed requests
// whose answers the quiet server gave before: they show what is wrong and
// finite.
//
// The evidence folder:
//
//	plan.yaml         the plan, byte for byte
//	plan.json         the resolved plan; its SHA-256 is plan_sha256
//	ledger.jsonl      what happened, one record a line
//	host-before.json  the host's state; host-after.json the same afterwards
//	arms/0001/        a life: server.log, neighbour.log and .jsonl,
//	                  samples.jsonl (memory and load every few seconds),
//	                  answers.zst (the raw bytes of every answer), faults/
//	verdict.json      the verdict when the run ended
//	report.html, .md  for people
//
// Guarantees: the runner retries nothing; the first fault reaches the disk
// before anything else happens and ends its life; when the runner is killed, no
// record is lost, server and neighbour end with it, and [Resume] goes on; a
// changed, torn or shortened ledger never passes.
package acceptance
