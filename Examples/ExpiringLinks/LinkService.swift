import Foundation

/// Issues links to the film, like the server of an app. Each link is valid for a few seconds, at the next host.
actor LinkService {
  /// A kind of link. The service uses its offers in turn.
  struct Offer: Sendable {
    /// The host of the link.
    var host: CDN
    /// Where the link contains its expiry.
    var form: LinkSigner.Form
    /// How long the link is valid.
    var seconds: TimeInterval
  }

  private let offers: [Offer]
  private let now: @Sendable () -> Date
  /// The number of links issued.
  private(set) var count = 0

  init(_ offers: [Offer], now: @escaping @Sendable () -> Date) {
    self.offers = offers
    self.now = now
  }

  /// Issues a link that is valid from now on.
  func freshLink() -> URL {
    let offer = offers[count % offers.count]
    count += 1
    return offer.host.link(until: now().addingTimeInterval(offer.seconds), offer.form)
  }
}
