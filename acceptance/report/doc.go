// Package report shows a run to people: one HTML page that holds everything it shows, and the same in Markdown for an
// issue.
//
// Both are functions of the evidence folder alone, byte for byte the same whenever they are made. The page has no
// script, loads nothing, and forbids itself to; it follows the reader's choice of light or dark and the width of the
// screen. Everything a reader could doubt is on it: which bytes were tested and by what plan, what the load really
// was, how far the bounds reach, and what was not tested.
//
// The plots are drawn from at most a few hundred points a line, however long the run was: a point stands for the
// median and the 99th percentile of the requests that ended in its part of the time.
package report
