/// A text that is in no description, no output of `dump` and no message.
struct Secret: Sendable, Hashable, CustomStringConvertible, CustomReflectable, ExpressibleByStringLiteral {
  let text: String

  init(_ text: String) { self.text = text }
  init(stringLiteral text: String) { self.text = text }

  var description: String { "…" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
