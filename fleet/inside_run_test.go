package fleet_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
)

// runInside runs a part of the tests of a scope, as the lingering user of the host or as root. The parts go by
// name, in turn; the order is another one each time.
func runInside(t *testing.T) {
	in := enter(t)
	part, err := strconv.Atoi(os.Getenv(partVariable))
	if err != nil || part < 0 || part >= parts {
		t.Fatalf("%s=%s", partVariable, os.Getenv(partVariable))
	}
	tests := userTests
	if in.uid == 0 {
		tests = systemTests
	}
	mine := map[string]bool{}
	for i, name := range slices.Sorted(maps.Keys(tests)) {
		mine[name] = i%parts == part
	}
	for name, test := range tests {
		if mine[name] {
			t.Run(name, func(t *testing.T) { test(t, in) })
		}
	}
}

var (
	systemTests = map[string]func(*testing.T, *inside){
		"system: switch, crash, roll back":        testSwitchAndRollback,
		"system: restart":                         testRestart,
		"system: roll back after a return":        testRollbackAfterReturn,
		"system: undo and further back":           testUndo,
		"system: rolled back while it is watched": testRollbackWhileWatched,
		"system: a stopped service":               testStopped,
		"system: both scopes":                     testBothScopes,
		"system: consent":                         testConsent,
	}
	userTests = map[string]func(*testing.T, *inside){
		"switch, crash, roll back":              testSwitchAndRollback,
		"the child is told apart":               testChild,
		"rollback goes to what served":          testRollbackTarget,
		"dies while it is watched":              testDiesLater,
		"restart":                               testRestart,
		"broken packages are given back":        testReturn,
		"a first switch to a broken one":        testReturnFromFirst,
		"a foreign server on the port":          testForeignServer,
		"what wins is refused":                  testWinners,
		"what wins later is shown":              testOverridden,
		"hrx.conf is shadowed":                  testShadowed,
		"refusals":                              testRefusals,
		"rollback on a full disk":               testFullDisk,
		"without a bus":                         testNoBus,
		"fifty at once":                         testConcurrent,
		"cut off":                               testCutOff,
		"the files of the rollback are damaged": testDamagedPrev,
		"roll back after a return":              testRollbackAfterReturn,
		"undo and further back":                 testUndo,
		"a bad release uses the start budget":   testStartBudget,
		"a unit is let go of":                   testLetGo,
		"roll back what was edited":             testRollbackOfEdited,
		"something is in the way of .prev":      testPrevInTheWay,
		"rolled back while it is watched":       testRollbackWhileWatched,
		"interrupted while it is watched":       testInterrupted,
		"the manager fails at the reload":       testReloadFails,
		"a start limit":                         testStartLimit,
		"links":                                 testLinks,
		"the state is lost or damaged":          testState,
		"a package is gone":                     testPackageGone,
		"a stopped service":                     testStopped,
		"only an EnvironmentFile":               testEnvironmentFile,
		"odd values":                            testOddValues,
		"unblock and unswitch":                  testUnblockAndUnswitch,
		"usage and discovery":                   testUsage,
		"a stopped instance needs its package":  testStoppedInstance,
		"a package elsewhere":                   testElsewhere,
		"another folder for settings":           testConfigHome,
		"the manager hangs":                     testSilentManager,
		"nobody may read our file":              testUnreadable,
		"a namesake":                            testNamesake,
		"survey":                                testSurvey,
		"a server in no package":                testStray,
		"a link to a package":                   testPinned,
		"what status says":                      testStatusWords,
		"adopt: spellings":                      testAdoptSpellings,
		"adopt: refusals":                       testAdoptRefusals,
		"adopt: drift":                          testAdoptDrift,
		"service new":                           testServiceNew,
		"a folder of several units":             testFolderOfSeveral,
		"a unit folder that is a link":          testLinkedUnitFolder,
		"consent":                               testConsent,
		"hold":                                  testHold,
		"propose":                               testPropose,
		"a unit in any state":                   testEveryState,
		"units that nothing can start":          testUnstartable,
		"a folder that may not be written":      testReadOnly,
		"how a start fails":                     testStartFailures,
		"ready":                                 testReady,
		"stopped by hand":                       testByHand,
		"it ends itself":                        testEndsItself,
		"the old one does not stop":             testOldDoesNotStop,
		"another program answers":               testAlien,
		"a return after a rollback":             testReturnFurther,
		"the start limit is used up":            testLimitUsedUp,
		"what depends on it":                    testDependants,
		"answered by another":                   testAnsweredByAnother,
		"kinds of unit":                         testKinds,
		"ways to be started":                    testWaysToBeStarted,
	}
)
