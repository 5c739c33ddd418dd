package fleet

// past is what is known, at the moment of a switch, about what a unit served until then.
type past struct {
	active  *DropIn    // our active file, nil for none
	prev    *DropIn    // its .prev, nil for none
	base    PackageRef // what the unit runs without a file of ours, zero when that is no package
	serving PackageRef // the package that is seen serving now, zero for none
	served  bool       // the active package was seen serving since it was armed
	blocks  []Block    // what the unit must not be switched to, and so is no target either
}

// target is where a rollback of the next switch goes: to ref by a file, or, with remove, to what the unit says
// without a file of ours (ref is then the package seen serving there, zero where none was).
type target struct {
	ref    PackageRef
	remove bool
}

// target picks the last package that the unit was seen serving before a switch to next. A package that was armed
// and never served is passed over, and so are one that is blocked and next itself: a rollback that goes where one
// already is would be none.
func (p past) target(next PackageRef) target {
	for _, t := range p.candidates() {
		if t.remove || (!t.ref.isZero() && !t.ref.same(next) && !p.blocked(t.ref)) {
			return t
		}
	}
	return target{remove: true}
}

func (p past) blocked(ref PackageRef) bool {
	_, is := blocked(p.blocks, ref)
	return is && !ref.isZero()
}

// candidates lists where the unit was seen serving, the most recent first.
func (p past) candidates() []target {
	if p.active == nil {
		t := target{remove: true}
		if p.serving.same(p.base) {
			t.ref = p.base
		}
		return []target{t}
	}
	var out []target
	now := p.serving
	if p.blocked(now) { // rolled back from and not restarted yet
		now = PackageRef{}
	}
	if now.isZero() && (p.served || !p.active.RolledBackFrom.isZero()) {
		now = p.active.Package
	}
	if !now.isZero() {
		if !now.same(p.active.Package) && p.active.Rollback == rollbackRemove && now.same(p.base) {
			return []target{{now, true}}
		}
		out = append(out, target{ref: now})
	}
	if p.active.Act == actAdopt {
		return append(out, target{ref: p.active.Package}) // the owner's own lines say the same
	}
	out = append(out, before(p.active))
	if p.prev != nil && p.prev.Package.same(p.active.ServedBefore) {
		out = append(out, before(p.prev))
	}
	return out
}

// before is where the file d itself rolls back to.
func before(d *DropIn) target {
	return target{d.ServedBefore, d.Rollback == rollbackRemove}
}

// file makes the file that a rollback from next to ref puts in place. The variables are those of our own file for
// that package where there is one.
func (p past) file(ref PackageRef, next *DropIn, rewrite func([]Assignment, PackageRef) ([]Assignment, error)) (*DropIn, error) {
	d := &DropIn{
		Unit: next.Unit, Package: ref, Act: actRollback, Generation: next.Generation, By: next.By, At: next.At,
		RolledBackFrom: next.Package, Rollback: rollbackRemove, Blocks: next.Blocks, Extra: next.Extra,
	}
	from := p.active
	if p.prev != nil && p.prev.Package.same(ref) && !p.active.Package.same(ref) {
		from = p.prev
	}
	d.Environment, d.Start, d.Adopted = from.Environment, from.Start, from.Adopted
	if from.Package.same(ref) {
		t := before(from)
		if !t.remove && t.ref.same(next.Package) { // from there it would lead forward again
			t = target{remove: true}
			if p.prev != nil && p.prev.Package.same(next.Package) {
				t = before(p.prev)
			}
		}
		d.ServedBefore, d.Rollback = t.ref, rollbackExchange
		if t.remove {
			d.Rollback = rollbackRemove
		}
	} else {
		var err error
		if d.Environment, err = rewrite(from.Environment, ref); err != nil {
			return nil, err
		}
	}
	d.block(next.Package, blockedByRollback)
	return d, nil
}

// blockedByRollback is the reason of a block that a rollback by hand sets.
const blockedByRollback = "rolled back"
