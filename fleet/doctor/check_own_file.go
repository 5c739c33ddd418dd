package doctor

// ownFile looks for files of ours that are not as we wrote them.
func ownFile() Check {
	return ofStatus("own-file",
		"A rollback exchanges our two files and needs nothing else; where one was edited or lost, it may be refused or need space.",
		"Move what is yours into a file of its own in that folder, then switch to the armed package again: 1bit pkg switch UNIT ID")
}
