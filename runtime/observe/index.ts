/** Public API of the observe module: log, audit, metrics and traces. */
export { type LineFile, makeLineFile, standardErrorLines } from './line-file.ts'
export { type AuditTrail, auditViolations, type ConsoleRecord, makeAudit } from './audit/audit.ts'
export { tellLoss } from './audit/loss.ts'
export {
  type AttachmentEnd,
  backendLabel,
  countEvents,
  type Deviation,
  type Events,
  failureText,
  logEvents,
  makeEvents,
  type OpenProblem,
  type RecentFailure,
  withDetail,
} from './events/index.ts'
export type { PolicyRecord } from './audit/policy-line.ts'
export { type AuditOutcome, type WorkflowEventType } from './audit/events.ts'
export type { ExchangeRecord } from './audit/exchange-line.ts'
export { recordedPayload } from './audit/payload.ts'
export { makeObserver, type Observer } from './exchange/observer.ts'
export type { ExchangeRecorder } from './exchange/reporter.ts'
export {
  annotateDenial,
  annotateGuardrail,
  annotateQuota,
  annotateWebhook,
  continueTrace,
  limitedDenial,
  quotaDenial,
  requestTrace,
  withNotes,
  type CallNotes,
} from './exchange/scope.ts'
export { isToolError, readError, type RpcResponse } from './exchange/rpc-answer.ts'
export { makeLog, type RootLog } from './log.ts'
export { type MaskText, RecordMask } from './record-mask.ts'
export { redactText } from './redact.ts'
export { Secret } from './secret.ts'
export { openServingCertificate } from './serving-certificate.ts'
export { sessionHash } from './session-hash.ts'
export { pinRefusal, type ShownSession, type ShownTool } from './shown.ts'
export { visibleText } from './text.ts'
export type { BackendCalls } from './telemetry/backend-calls.ts'
export type { Metrics } from './telemetry/metrics.ts'
export { rateLimitRecorder } from './telemetry/rate-limits.ts'
export { respondToScrape } from './telemetry/prometheus.ts'
export { telemetryViolations } from './telemetry/settings.ts'
export { makeTelemetry, noTelemetry, type Instruments } from './telemetry/telemetry.ts'
export type { SpanHandle, Tracer } from './telemetry/tracer.ts'
