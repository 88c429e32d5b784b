/** Public API of the observe module: log, audit, metrics and traces. */
export type { Log, LogFields } from '../net/index.ts'
export {
  type Audit,
  type AuditOptions,
  type AuthorizationRecord,
  type CallRecord,
  makeAudit,
  type WorkflowRecord,
} from './audit/audit.ts'
export {
  countEvents,
  EVENT_TYPES,
  type EventFields,
  type EventListener,
  type Events,
  EVENTS,
  type EventType,
  failureText,
  logEvents,
  makeEvents,
  type Problem,
  REPEAT_WINDOW_MS,
  type ServerEvent,
} from './events/index.ts'
export {
  AUDIT_EVENTS,
  type AuditOutcome,
  type AuthorizationEventType,
  type WorkflowEventType,
} from './audit/events.ts'
export {
  makeObserver,
  type Observer,
  type ObserverOptions,
  type OperationFacts,
} from './exchange/observer.ts'
export { isToolError, readError, type RpcResponse } from './exchange/rpc-answer.ts'
export type { MessageView, ParamsView } from './exchange/rpc.ts'
export { type LogLevel, type LogOptions, makeLog, type RootLog } from './log.ts'
export { isSecretName, redactFields, redactText } from './redact.ts'
export { Secret } from './secret.ts'
export { ATTRIBUTES, LEGACY_ONLY } from './telemetry/attributes.ts'
export type { BackendCall, BackendCalls } from './telemetry/backend-calls.ts'
export { type MetricName, METRICS, prometheusName } from './telemetry/metric-table.ts'
export { type InternalSpan, SPANS } from './telemetry/span-table.ts'
export type { Labels, Metrics } from './telemetry/metrics.ts'
export { type RateLimitFacts, rateLimitRecorder } from './telemetry/rate-limits.ts'
export { telemetryViolations } from './telemetry/settings.ts'
export { makeTelemetry, noTelemetry, type Telemetry, type TelemetryOptions } from './telemetry/telemetry.ts'
export type { Attributes, SpanHandle, Tracer } from './telemetry/tracer.ts'
