#if LIBCURL
  import CCurl
  import DownpipeCore

  // The head of the response: several may come before the one that is the answer.
  extension Transfer {
    func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
      // The next head has begun: without its end there is no response.
      if !hasHead, line.starts(with: "HTTP/".utf8) { isHeadPending = false }
      // Trailers say nothing that a download needs, but libcurl keeps them.
      let isEnd = collector.take(line)
      let maximumHeaderBytes = loop.configuration.maximumHeaderBytes
      if collector.bytes > maximumHeaderBytes {
        return stop(
          DownloadError(
            .invalidResponse,
            "the header of the response has more than \(maximumHeaderBytes) bytes; ask the operator of the server, or allow "
              + "more"))
      }
      if hasHead {
        lastActivity = loop.now
        return true
      }
      guard isEnd, let handle else { return true }
      let status = handle.number(CURLINFO_RESPONSE_CODE)
      if status == 101 {
        return stop(
          DownloadError(
            .invalidResponse,
            "the server switched to another protocol (status 101), which was not requested; ask the operator of the server",
            httpStatus: 101))
      }
      // After an interim response there is another one, and perhaps after a question for a password.
      if (100..<200).contains(status) { return true }
      if status == 407 || (status == 401 && order.login?.mayAskAgain == true) {
        isHeadPending = true
        questions += 1
        if questions <= Self.maximumQuestions { return true }
        return stop(
          DownloadError(
            .httpStatus, "the server asks for the password again and again: check the user name and the password",
            httpStatus: status))
      }
      return deliverHead(status)
    }

    private func deliverHead(_ status: Int) -> Bool {
      if collector.hidesTransferCoding {
        return stop(
          DownloadError(
            .invalidResponse, "the Transfer-Encoding of the response is malformed; ask the operator of the server"))
      }
      hasHead = true
      self.status = status
      let head = ResponseHead(status: status, fields: collector.takeFields())
      hasTransferCoding = head.fields["Transfer-Encoding"] != nil
      length = TransferCodings.areIdentity(head.fields) ? (try? ContentLength.parse(head.fields))?.bytes : nil
      guard case .asking(let continuation) = phase else { return stop(Exchange.unwanted) }
      phase = .holding
      continuation.resume(returning: head)
      return true
    }

    /// Delivers the last head if it was complete: libcurl forgives a response that ends in its head.
    func deliverPendingHead() -> Bool {
      guard isHeadPending, let handle else { return false }
      return deliverHead(handle.number(CURLINFO_RESPONSE_CODE))
    }
  }
#endif
