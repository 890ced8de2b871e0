import DownpipeCore
import Testing

@Suite(.timeLimit(.minutes(1)))
struct LifecycleTests {
  typealias Phase = DownloadState.Phase
  typealias Event = Lifecycle.Event
  typealias Effect = Lifecycle.Effect

  /// Every legal pair, written down a second time: a change to the table has to be made here as well.
  static let legal: [Phase: [Event: (Phase, Set<Effect>)]] = [
    .waiting: [
      .claimed: (.transferring, [.startTransfer]),
      .pause: (.paused, []),
      .resume: (.waiting, [.makeDue]),
      .cancel: (.cancelled, [.removePartial]),
    ],
    .transferring: [
      .bytesComplete: (.processing, [.startSteps]),
      .failedForNow: (.waiting, [.freePlace]),
      .failedForGood: (.failed, [.freePlace]),
      .suspended: (.waiting, [.stopWork, .freePlace]),
      .pause: (.paused, [.stopWork, .freePlace]),
      .cancel: (.cancelled, [.stopWork, .freePlace, .removePartial]),
    ],
    .processing: [
      .stepsComplete: (.finished, [.freePlace, .removePartial]),
      .failedForNow: (.waiting, [.freePlace]),
      .failedForGood: (.failed, [.freePlace]),
      .suspended: (.waiting, [.stopWork, .freePlace]),
      .pause: (.paused, [.stopWork, .freePlace]),
      .cancel: (.cancelled, [.stopWork, .freePlace, .removePartial]),
    ],
    .paused: [
      .resume: (.waiting, [.makeDue]),
      .cancel: (.cancelled, [.removePartial]),
    ],
    .failed: [
      .resume: (.waiting, [.makeDue]),
      .addedAgain: (.waiting, [.makeDue]),
      .cancel: (.cancelled, [.removePartial]),
    ],
    .cancelled: [
      .resume: (.waiting, [.makeDue]),
      .addedAgain: (.waiting, [.makeDue]),
    ],
    .finished: [
      .artifactLost: (.waiting, [.makeDue])
    ],
  ]

  @Test("every pair of phase and event, the illegal ones too", arguments: Phase.allCases, Event.allCases)
  func table(phase: Phase, event: Event) {
    let actual = Lifecycle.next(phase, event)
    guard let expected = Self.legal[phase]?[event] else {
      #expect(actual == nil, "\(phase) must ignore \(event)")
      return
    }
    #expect(actual?.phase == expected.0)
    #expect(actual?.effects == expected.1)
  }

  @Test func workEndsWheneverAnActivePhaseIsLeft() {
    for phase in Phase.allCases where phase.isActive {
      for event in Event.allCases {
        guard let next = Lifecycle.next(phase, event), !next.phase.isActive else { continue }
        #expect(next.effects.contains(.freePlace), "\(phase) + \(event) keeps its place")
      }
    }
  }

  @Test func nothingLeavesAFinalPhaseByItself() {
    for phase in Phase.allCases where phase.isFinal {
      for event in [Event.claimed, .bytesComplete, .stepsComplete, .failedForNow, .failedForGood, .suspended] {
        #expect(Lifecycle.next(phase, event) == nil)
      }
    }
  }

  @Test func phasesThatAcceptAnEvent() {
    #expect(Lifecycle.phases(accepting: .resume) == [.waiting, .paused, .failed, .cancelled])
    #expect(Lifecycle.phases(accepting: .pause) == [.waiting, .transferring, .processing])
    #expect(Lifecycle.phases(accepting: .stepsComplete) == [.processing])
  }
}
