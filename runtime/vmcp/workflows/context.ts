/**
 * What everything in one execution of a workflow works with.
 */
import type { Audit, AuditOutcome, Telemetry, WorkflowEventType } from '../../observe/index.ts'
import type { TemplateValue, ValueObject } from '../../expr/template/index.ts'
import type { Log } from '../../net/index.ts'
import type { Clock } from '../clock.ts'
import type { ToolEntry } from '../catalog/types.ts'
import type { Operation, Outcome } from '../pipeline/operation.ts'
import type { Workflow } from './compile.ts'

/** Calls a tool of a backend, hidden ones too; `timeoutMs` is the least that the backend has for it. */
export type CallTool = (
  operation: Operation,
  entry: ToolEntry,
  timeoutMs: number | undefined,
) => Promise<Outcome>

export interface WorkflowParts {
  readonly call: CallTool
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly audit: Audit
  readonly telemetry: Telemetry
  readonly log: Log
}

/** A tool of a step, as the catalog has it. */
export interface BoundTool {
  readonly entry: ToolEntry
  /** Its input schema; read when it is needed first. */
  readonly inputSchema: () => unknown
}

/** The root of what templates see. */
export interface TemplateData {
  readonly params: ValueObject
  readonly steps: Record<string, ValueObject>
  readonly vars: ValueObject
  readonly workflow: ValueObject
  readonly [more: string]: TemplateValue
}

/** One execution. */
export interface Context {
  /** Of the execution; random. */
  readonly id: string
  readonly workflow: Workflow
  readonly tools: ReadonlyMap<string, BoundTool>
  /** The client's call. */
  readonly operation: Operation
  readonly parts: WorkflowParts
}

export interface AuditFacts {
  readonly stepId?: string
  readonly extra?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly request?: Buffer | undefined
  readonly response?: Buffer | undefined
}

export function auditWorkflow(
  { id, workflow, operation, parts }: Context,
  type: WorkflowEventType,
  outcome: AuditOutcome,
  facts: AuditFacts,
): void {
  const { caller } = operation.client
  parts.audit.workflow({ type, outcome, caller, workflowId: id, workflowName: workflow.name, ...facts })
}
