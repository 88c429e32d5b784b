/** Public API of the observe module: log, audit, metrics and traces. */
export { type LineFile, lostLogLines, makeLineFile, standardErrorLines } from './line-file.ts'
export { type AuditTrail, auditViolations, type ConsoleRecord, makeAudit } from './audit/audit.ts'
export { reportLoss } from './audit/loss.ts'
export type { AttachmentEnd } from './events/attach-fields.ts'
export type { Deviation } from './events/deviations.ts'
export {
  type BackendSummary,
  type Cause,
  causeFix,
  causeText,
  causeTitle,
  decisiveLine,
  observedBackend,
  isSignInRequired,
  signInFix,
  summarizeBackends,
  tellingLines,
  withDetail,
} from './causes.ts'
export { logEvents } from './events/log-view.ts'
export { backendLabel, countEvents } from './events/metrics-view.ts'
export type { OpenProblem } from './events/problems.ts'
export type { RecentFailure } from './events/recent.ts'
export { type Events, makeEvents } from './events/stream.ts'
export type { PolicyRecord } from './audit/policy-line.ts'
export { type AuditOutcome, type WorkflowEventType } from './audit/events.ts'
export type { ExchangeRecord } from './audit/exchange-line.ts'
export { recordedPayload } from './audit/payload.ts'
export { makeObserver, type Observer } from './exchange/observer.ts'
export type { ExchangeRecorder } from './exchange/reporter.ts'
export {
  annotateDenial,
  annotateGuardrail,
  annotateTask,
  annotateQuota,
  annotateWebhook,
  continueTrace,
  limitedDenial,
  quotaDenial,
  requestTrace,
  withNotes,
  type CallNotes,
  keepScope,
} from './exchange/scope.ts'
export { isToolError, readError, type RpcResponse } from './exchange/rpc-answer.ts'
export { makeLog, type RootLog } from './log.ts'
export { type MaskText, RecordMask } from './record-mask.ts'
export { redactText, visibleText } from './redact.ts'
export { Secret } from './secret.ts'
export { openServingCertificate } from './serving-certificate.ts'
export { pinRefusal, sessionHash, type ShownSession, type ShownTask, type ShownTool } from './shown.ts'
export type { BackendCalls } from './telemetry/backend-calls.ts'
export type { Metrics } from './telemetry/metrics.ts'
export { rateLimitRecorder } from './telemetry/rate-limits.ts'
export { respondToScrape } from './telemetry/prometheus.ts'
export { telemetryViolations } from './telemetry/settings.ts'
export { makeTelemetry, noTelemetry, type Instruments } from './telemetry/telemetry.ts'
export type { SpanHandle, Tracer } from './telemetry/tracer.ts'
