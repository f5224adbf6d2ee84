package main

import "slices"

// mutants are all of them, in the order of the layers.
var mutants = slices.Concat(ofWriter, ofLog, ofActors, ofLifecycle, ofCheckpoint, ofHistory, ofTrees, ofOutput, ofRewrite, ofExport, ofBundle, ofTerminal, ofRepository, ofCommit, ofSidecar, ofCriteria, ofCommand, ofChild, ofAgent, ofLoop, ofBackup, ofImport, ofHistories, ofWorktrees, ofPlugin, ofSearch, ofHooks, ofMCP, ofFleet, ofClock, ofTracked, ofRefused, ofSmall, ofOpen, ofRules, ofMounts, ofStable, ofRenamed, ofMemory, ofLost, ofNil, ofText, ofPlaces, ofGuards, ofFleetTrust, ofSources, ofContract)
