/// The faults of otherwise correct ledgers that the conformance suite has to find.
enum Fault: String, CaseIterable, Sendable {
  case sharesOwner, forgetsOnClose, addsTwice, revivesFinished, losesHeaders, repeatsGeneration
  case forgetsSettings, holdsForever, ignoresPrecedence
  case leasesEarly, leasesHeld, ignoresSkip, asksTwice, ignoresStop, keepsAttempts,
    ignoresScope, ignoresLocation
  case savesAlways, savesEverything, keepsLease, reclaimsNothing, reclaimsAll, leasesFirst, makesExchangesAgain
  case movesHeld, movesSilently, staysInterrupted, forgetsLost, forgetsLocation, namesAll, removesHeld, ignoresChoice,
    forgetsLeft, keepsLeft, makesChangesAgain,
    ignoresOrder, ignoresTag, findsOne, miscounts, neverDue
  case keepsRank, forgetsRanking, ranksOnce, ranksWaitingOnly
  case overwrites, keepsNothing, revivesCancelled, updatesAll, losesRefusal, loses, updatesSilently
  case ignoresHost, ignoresIntent, ignoresPhases, updatesUntilRefused, updatesOne
  case sumsCancelled, findsNoMoves, hearsNothing, ignoresTagScope, ignoresIDScope, pages
  case leasesWholeRate, confusesRates, endsSharesEarly
  case ignoresAfter, leasesDependents, neverReleases, hidesDelays, alwaysBusy
  case restoresAdded, restoresOver, restoresBackwards, restoresWithoutOrder, readsPagesByArrival

  /// The rules that the suite must report as broken, among others.
  var rules: Set<String> {
    switch self {
    case .sharesOwner: ["owner-is-unique"]
    case .forgetsOnClose: ["close-gives-back"]
    case .addsTwice: ["known-is-updated", "add-keeps-order"]
    case .revivesFinished: ["finished-stays"]
    case .losesHeaders: ["request-is-kept"]
    case .repeatsGeneration: ["generation-grows", "save-after-remove"]
    case .forgetsSettings: ["settings-are-kept"]
    case .holdsForever: ["hold-ends"]
    case .ignoresPrecedence: ["precedence"]
    case .leasesEarly: ["not-before-is-honoured"]
    case .leasesHeld: ["lease-once", "lease-takes-over"]
    case .ignoresSkip, .asksTwice, .ignoresStop: ["select-is-obeyed"]
    case .keepsAttempts: ["lease-takes-over"]
    case .ignoresScope: ["lease-own"]
    case .ignoresLocation: ["lease-location", "query-location"]
    case .leasesFirst: ["exchange"]
    // It has no numbers.
    case .makesExchangesAgain: ["exchange-again"]
    case .movesSilently: ["transition-moves", "events-1"]
    case .staysInterrupted: ["events-1"]
    case .forgetsLost: ["add-lost"]
    case .forgetsLocation: ["location-is-kept", "add-elsewhere", "add-active-elsewhere"]
    case .savesAlways: ["save-needs-the-lease", "save-after-remove"]
    case .savesEverything: ["save-state-only", "save-checkpoint-only", "save-steps-only"]
    case .keepsLease: ["save-waiting-lease", "save-failed-lease"]
    case .reclaimsNothing: ["reclaim-lapsed"]
    case .reclaimsAll: ["live-is-kept"]
    case .movesHeld: ["transition-leaves-held"]
    case .namesAll: ["transition-many"]
    case .removesHeld: ["remove-leaves-others"]
    case .ignoresChoice: ["remove-chooses"]
    case .forgetsLeft, .keepsLeft: ["remove-leaves"]
    case .makesChangesAgain: ["add-again", "update-again", "update-all-again", "transition-again", "remove-again"]
    case .ignoresOrder: ["query-orders"]
    case .ignoresTag: ["query-filters", "odd-text-is-kept"]
    case .findsOne: ["query-ids"]
    case .miscounts: ["counts-are-right"]
    case .neverDue: ["next-due"]
    case .keepsRank: ["lease-in-rank-order", "ranks-anew", "ranking-many"]
    case .forgetsRanking: ["ranking-is-known"]
    case .ranksOnce: ["ranking-is-replaced"]
    case .ranksWaitingOnly: ["ranks-anew"]
    case .overwrites: ["add-merges", "link-is-merged"]
    case .keepsNothing: ["add-keeps"]
    case .revivesCancelled: ["cancelled-stays"]
    case .leasesWholeRate: ["shared-rates", "shared-rates-hold"]
    case .confusesRates: ["shared-rates-keys"]
    case .endsSharesEarly: ["shared-rates-expire"]
    case .updatesAll: ["update-held"]
    case .losesRefusal: ["update-refused"]
    case .loses: ["add-merges", "update-keeps-added"]
    case .updatesSilently: ["update-writes"]
    case .ignoresHost, .ignoresIntent, .ignoresPhases:
      ["filter-queries", "filter-transitions", "filter-removals", "update-all-selects"]
    case .updatesUntilRefused: ["update-all-refused"]
    case .updatesOne: ["update-all-selects", "update-all-ids", "update-all-ranks"]
    case .sumsCancelled: ["totals"]
    case .findsNoMoves: ["unsettled-moves"]
    case .hearsNothing: ["changes-by-others"]
    case .ignoresTagScope: ["lease-tag"]
    case .ignoresIDScope: ["lease-ids"]
    case .pages: ["query-all"]
    case .ignoresAfter: ["after-holds", "after-exchange", "after-unknown", "after-cycle", "request-is-kept"]
    case .leasesDependents: ["after-holds", "after-unknown", "after-resting", "after-due"]
    case .neverReleases: ["after-holds", "after-exchange", "after-unknown", "after-others"]
    case .hidesDelays: ["after-due"]
    case .alwaysBusy: ["is-busy"]
    case .restoresAdded: ["restore-is-whole", "restore-generations"]
    case .restoresOver: ["restore-leaves-known"]
    case .restoresBackwards: ["restore-keeps-order", "restore-leaves-known"]
    case .restoresWithoutOrder: ["restore-dependencies", "restore-refuses-cycles"]
    case .readsPagesByArrival: ["restore-keeps-order", "generations-in-pages"]
    }
  }
}
