// Package answers keeps the raw answers of one server life, so that whoever
// doubts a verdict can read every byte that it was made from.
//
// Nouns:
//
//   - Writer appends answers to a file that nobody had before. Every Add is one
//     write of one whole record, so a process that is killed loses nothing it
//     added before; Sync brings it to the disk for a host that loses power.
//   - Reader finds an answer by its request's number. What a write left torn at
//     the end is dropped, and Torn says how much.
//
// # The file
//
// It is a sequence of frames as Zstandard defines them (RFC 8878). Each answer
// is a skippable frame with a record's head and a compressed frame with a
// checksum. The answers of one life resemble each other, so each is compressed
// with an earlier one as its dictionary: the first, or the last that was at
// least twice as long as the dictionary before it. Those are compressed without
// one. With a file of one dictionary,
//
//	zstd -dc answers.zst | head -c LENGTH > first; zstd -dc -D first answers.zst
//
// prints all answers.
package answers
