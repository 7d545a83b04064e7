// The few words of libcurl's C ABI that http.cpp speaks, so that neither building nor starting needs libcurl. The
// values are fixed for all of libcurl 7 and 8; http_test.cpp compares them with <curl/curl.h>.
#pragma once

#include <cstddef>

namespace gpuwright::curl {

enum Option : int {
  kUrl = 10002,
  kWriteData = 10001,
  kWriteFunction = 20011,
  kHeaderData = 10029,
  kHeaderFunction = 20079,
  kHttpHeader = 10023,
  kUserAgent = 10018,
  kRange = 10007,
  kNoSignal = 99,
  kFollowLocation = 52,
  kProtocols = 181,
  kConnectTimeoutMs = 156,
  kTimeoutMs = 155,
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kSslVerifyPeer = 64,
  kSslVerifyHost = 81,
};
enum Info : int { kResponseCode = 0x200002, kRedirectUrl = 0x10001f };
enum Protocol : long { kHttp = 1, kHttps = 2 };
enum Code : int {
  kOk = 0,
  kCouldntResolveProxy = 5,
  kCouldntResolveHost = 6,
  kCouldntConnect = 7,
  kHttp2 = 16,
  kPartialFile = 18,
  kWriteError = 23,
  kTimedOut = 28,
  kSslConnectError = 35,
  kGotNothing = 52,
  kSendError = 55,
  kReceiveError = 56,
  kSslPeer = 60,
  kHttp2Stream = 92,
};
constexpr long kGlobalDefault = 3;

struct Easy;
struct List;

using GlobalInit = int (*)(long);
using EasyInit = Easy* (*)();
using EasyCleanup = void (*)(Easy*);
using EasyReset = void (*)(Easy*);
using EasySetopt = int (*)(Easy*, int, ...);
using EasyGetinfo = int (*)(Easy*, int, ...);
using EasyPerform = int (*)(Easy*);
using EasyStrerror = const char* (*)(int);
using ListAppend = List* (*)(List*, const char*);
using ListFree = void (*)(List*);

}  // namespace gpuwright::curl
