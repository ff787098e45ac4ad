package folder

// DamageInLog is for the tests of logs that a store has written.
var DamageInLog = damageInLog
