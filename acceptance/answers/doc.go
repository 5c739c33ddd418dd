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
// It is a sequence of frames as Zstandard defines them (RFC 8878): for every
// answer a skippable frame that is its head, and a frame with its floats and
// its text. A request of 96 tokens with log-probabilities has 15 to 40 kB of
// answer, and 1 to 2 kB here. Two things make that:
//
//   - Numbers that are a float32 spelled out are taken out of the text, which
//     has a mark in their place (0x01, and 0x02 for the number before once
//     more; JSON has neither byte). They stand before the text, four bytes
//     each.
//   - The answers of one life resemble each other, so each text is compressed
//     with an earlier one as its dictionary: the first, or the last that was at
//     least twice as long as the dictionary before it. Those are compressed
//     without one.
//
// A head is, in little-endian numbers: the request 8, length of the answer 4,
// its CRC-32 4, floats 4, length of the frame 4, flags 1 (1: a dictionary, 2:
// marks in the text), CRC-32 of all this 4.
package answers
