package engine

import (
	"encoding/json"
	"strings"
)

// parseJSON reads the log lines of early 2024. Slot and task were called
// slot_id and task_id first, id_slot and id_task later.
func (ev *LogEvent) parseJSON(line string) bool {
	var in struct {
		Level     string `json:"level"`
		Msg       string `json:"msg"`
		SlotID    *int   `json:"slot_id"`
		TaskID    *int   `json:"task_id"`
		IDSlot    *int   `json:"id_slot"`
		IDTask    *int   `json:"id_task"`
		Past      int    `json:"n_past"`
		Truncated bool   `json:"truncated"`
		Slots     int    `json:"n_slots"`
	}
	if json.Unmarshal([]byte(line), &in) != nil || in.Msg == "" {
		return false
	}
	if in.Level != "" {
		ev.Level = in.Level[0]
	}
	ev.Detail = in.Msg
	slot, task := in.SlotID, in.TaskID
	if slot == nil {
		slot, task = in.IDSlot, in.IDTask
	}
	if task != nil {
		ev.Task = *task
	}
	if slot == nil {
		return ev.jsonServer(in.Msg, in.Slots)
	}
	ev.Slot = *slot
	switch in.Msg {
	case "slot is processing task":
		ev.Kind = LogLaunch
	case "slot released":
		ev.Kind, ev.Tokens, ev.Truncated = LogRelease, in.Past, in.Truncated
	default:
		return ev.slotText(strings.TrimLeft(in.Msg, " "))
	}
	return true
}

func (ev *LogEvent) jsonServer(msg string, slots int) bool {
	switch msg {
	case "initializing slots":
		ev.Kind, ev.Slots = LogStartup, slots
	case "all slots are idle":
		ev.Kind = LogIdle
	default:
		return ev.otherLine(msg)
	}
	return true
}
