#if Archive
  /// A pattern for the paths of entries.
  ///
  /// `?` is any character but `/`, `*` any number of them, `**` any characters, `[a-z]` one of a set (`[!a-z]` none of
  /// it), and `\` takes the next character as it is. A pattern with a `/` is compared with the path from the archive's
  /// root, one without with every name in the path. What is below a folder that matches matches, too.
  struct EntryPattern: Sendable, Hashable {
    private enum Token: Hashable {
      case character(Character)
      case any, anyInName, anything
      case set([ClosedRange<Character>], isNegated: Bool)
    }

    let text: String
    private let tokens: [Token]
    private let isForNames: Bool

    init(_ text: String) {
      self.text = text
      let path = text.drop { $0 == "/" }
      let trimmed = path.last == "/" ? path.dropLast() : path
      isForNames = !trimmed.contains("/") && !text.hasPrefix("/")
      tokens = Self.tokens(Array(trimmed))
    }

    /// Whether the path, or a folder above it, matches.
    func matches(_ components: [String]) -> Bool {
      if isForNames { return components.contains { matches([$0][...]) } }
      return matches(components[...])
    }

    /// Whether the components, or the first of them, match. A slash before a combining mark is no Character of its own.
    ///
    /// Follows all ways through the pattern at once: no pattern takes longer than its length times that of the text.
    private func matches(_ components: ArraySlice<String>) -> Bool {
      var states = closure([0])
      for (index, component) in components.enumerated() {
        if index > 0 {
          if states.contains(tokens.count) { return true }
          states = step(states, "/")
        }
        for character in component where !states.isEmpty { states = step(states, character) }
        if states.isEmpty { return false }
      }
      return states.contains(tokens.count)
    }

    /// The ways that are left after one more character; no name has a slash.
    private func step(_ states: Set<Int>, _ character: Character) -> Set<Int> {
      var next: Set<Int> = []
      for state in states where state < tokens.count {
        switch tokens[state] {
        case .character(let wanted): if wanted == character { next.insert(state + 1) }
        case .any: if character != "/" { next.insert(state + 1) }
        case .anyInName: if character != "/" { next.insert(state) }
        case .anything: next.insert(state)
        case .set(let ranges, let isNegated):
          if character != "/", ranges.contains(where: { $0.contains(character) }) != isNegated {
            next.insert(state + 1)
          }
        }
      }
      return closure(next)
    }

    private func closure(_ states: Set<Int>) -> Set<Int> {
      var all = states
      for state in states {
        var state = state
        while state < tokens.count, tokens[state] == .anyInName || tokens[state] == .anything {
          state += 1
          all.insert(state)
        }
      }
      return all
    }

    private static func tokens(_ pattern: [Character]) -> [Token] {
      var tokens: [Token] = []
      var index = 0
      while index < pattern.count {
        let character = pattern[index]
        index += 1
        switch character {
        case "?": tokens.append(.any)
        case "*":
          if index < pattern.count, pattern[index] == "*" {
            while index < pattern.count, pattern[index] == "*" { index += 1 }
            tokens.append(.anything)
          } else {
            tokens.append(.anyInName)
          }
        case "\\" where index < pattern.count:
          tokens.append(.character(pattern[index]))
          index += 1
        case "[":
          if let (set, end) = set(pattern, from: index) {
            tokens.append(set)
            index = end
          } else {
            tokens.append(.character(character))
          }
        default: tokens.append(.character(character))
        }
      }
      return tokens
    }

    /// The set that begins after a bracket, and the index after it; `nil` when the bracket is not closed.
    private static func set(_ pattern: [Character], from start: Int) -> (Token, Int)? {
      var index = start
      let isNegated = index < pattern.count && (pattern[index] == "!" || pattern[index] == "^")
      if isNegated { index += 1 }
      var ranges: [ClosedRange<Character>] = []
      while index < pattern.count, pattern[index] != "]" || ranges.isEmpty {
        let first = pattern[index]
        if index + 2 < pattern.count, pattern[index + 1] == "-", pattern[index + 2] != "]", first <= pattern[index + 2]
        {
          ranges.append(first...pattern[index + 2])
          index += 3
        } else {
          ranges.append(first...first)
          index += 1
        }
      }
      return index < pattern.count ? (.set(ranges, isNegated: isNegated), index + 1) : nil
    }
  }
#endif
