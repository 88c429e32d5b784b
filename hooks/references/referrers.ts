/**
 * Which workloads of the namespace refer to a configuration object.
 *
 * References are read through guards, for the referrers may be of any state. A referrer that is being deleted does not
 * count. Entries count, but cannot be listed: the status knows three kinds of workloads.
 * Source: docs/specification/external-auth.md#status, "status", "Incoming references".
 */
import type { WorkloadReference } from '../../schemas/index.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../base/kube.ts'

export type Referring = 'MCPServer' | 'MCPRemoteProxy' | 'VirtualMCPServer' | 'MCPServerEntry'

/** For each referring kind, the names that one object refers to. */
export type References = Readonly<Partial<Record<Referring, (object: KubeObject) => readonly unknown[]>>>

/** In the order of their names. */
const referring: readonly Referring[] = ['MCPRemoteProxy', 'MCPServer', 'MCPServerEntry', 'VirtualMCPServer']

export function isReferring(kind: string): kind is Referring {
  return referring.some((one) => one === kind)
}

export interface Referrers {
  readonly count: number
  /** Sorted by kind, then name. */
  readonly workloads: readonly WorkloadReference[]
}

export function referrersOf(
  name: string,
  references: References,
  members: (kind: string) => readonly KubeObject[],
): Referrers {
  const found = referring.flatMap((kind) =>
    members(kind)
      .filter((object) => references[kind]?.(object).includes(name))
      .map((object) => ({ kind, name: object.metadata.name })),
  )
  return { count: found.length, workloads: found.filter(isWorkload) }
}

function isWorkload(reference: {
  readonly kind: Referring
  readonly name: string
}): reference is WorkloadReference {
  return reference.kind !== 'MCPServerEntry'
}

function spec(object: KubeObject): Fields {
  return fieldsOf(object['spec'])
}

/** `spec.<field>.name` for each field. */
function named(...fields: readonly string[]) {
  return (object: KubeObject) => fields.map((field) => fieldsOf(spec(object)[field])['name'])
}

function incoming(field: string) {
  return (object: KubeObject) => [fieldsOf(fieldsOf(spec(object)['incomingAuth'])[field])['name']]
}

export const externalAuthReferences: References = {
  MCPServer: named('externalAuthConfigRef', 'authServerRef'),
  MCPRemoteProxy: named('externalAuthConfigRef', 'authServerRef'),
  MCPServerEntry: named('externalAuthConfigRef'),
  VirtualMCPServer: outgoingNames,
}

/** Named in spec.outgoingAuth, or found through a member: the status says which. */
function outgoingNames(server: KubeObject): readonly unknown[] {
  const outgoing = fieldsOf(spec(server)['outgoingAuth'])
  const entries = [outgoing['default'], ...Object.values(fieldsOf(outgoing['backends']))]
  const discovered = listOf(fieldsOf(server['status'])['discoveredBackends']).filter(isFields)
  return [
    ...entries.map((entry) => fieldsOf(fieldsOf(entry)['externalAuthConfigRef'])['name']),
    ...discovered.map((backend) => backend['authConfigRef']),
  ]
}

export const oidcReferences: References = {
  MCPServer: named('oidcConfigRef'),
  MCPRemoteProxy: named('oidcConfigRef'),
  VirtualMCPServer: incoming('oidcConfigRef'),
}

export const authzReferences: References = {
  MCPServer: named('authzConfigRef'),
  MCPRemoteProxy: named('authzConfigRef'),
  VirtualMCPServer: incoming('authzConfigRef'),
}

export const telemetryReferences: References = {
  MCPServer: named('telemetryConfigRef'),
  MCPRemoteProxy: named('telemetryConfigRef'),
  VirtualMCPServer: named('telemetryConfigRef'),
}

export const webhookReferences: References = {
  MCPServer: named('webhookConfigRef'),
  MCPRemoteProxy: named('webhookConfigRef'),
  VirtualMCPServer: named('webhookConfigRef'),
}

export const toolReferences: References = {
  MCPServer: named('toolConfigRef'),
  MCPRemoteProxy: named('toolConfigRef'),
  VirtualMCPServer(server) {
    const tools = listOf(fieldsOf(fieldsOf(spec(server)['config'])['aggregation'])['tools'])
    return tools.map((entry) => fieldsOf(fieldsOf(entry)['toolConfigRef'])['name'])
  },
}

export const workflowReferences: References = {
  VirtualMCPServer: (server) =>
    listOf(fieldsOf(spec(server)['config'])['compositeToolRefs']).map((entry) => fieldsOf(entry)['name']),
}
