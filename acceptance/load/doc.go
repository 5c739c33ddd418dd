// Package load says who sends a request when, and what became of the time it
// took.
//
// Nouns:
//
//   - Schedule is closed (every worker sends its next request when it has the
//     answer to the one before) or bursts (all workers at once, at intended
//     times).
//   - Run carries a schedule out. It never has more requests in flight than
//     the schedule has workers, and starts none after its end.
//   - Histogram counts latencies, in buckets whose width is less than 1 % of
//     their value.
//
// A latency counts from the moment at which a request was intended to start. A
// server that stalls keeps its workers from sending, so a latency from the
// actual start would leave out the very requests that the stall hurt. In bursts
// the intended times are fixed in advance. In a closed loop a worker intends its
// next request the moment it is free, so that there a stall counts once a
// worker.
package load
