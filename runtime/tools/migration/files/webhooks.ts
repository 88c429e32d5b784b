/**
 * Converts the webhooks of a server that runs on a developer's machine. The `--webhook-config` file becomes an
 * MCPWebhookConfig. The lists in a run configuration become an MCPWebhookConfig that the server refers to.
 *
 * Certificates and secrets are in files and stores on that machine, so the created Secret contains their keys with
 * empty values. A server does not start while any value for its webhooks is empty.
 */
import { apiVersion, type Fields, fieldsOf, isFields, own } from '../../../../schemas/index.ts'
import { MigrationDraft, type ObjectContext } from '../objects/draft.ts'
import { noteWebhooks, webhookName } from '../objects/webhook-rules.ts'
import { settle } from '../objects/object.ts'
import type { RunConfigParts } from './reader.ts'

const lists = ['mutating', 'validating'] as const

/** Fields with file paths, and the references that replace them. */
const tlsFiles: Readonly<Record<string, readonly [key: string, reference: string]>> = {
  ca_bundle_path: ['ca', 'caSecretRef'],
  client_cert_path: ['client-cert', 'clientCertSecretRef'],
  client_key_path: ['client-key', 'clientKeySecretRef'],
}

export function isWebhookFile(doc: Fields): boolean {
  if (doc['apiVersion'] !== undefined || doc['kind'] !== undefined) return false
  const known = Object.keys(doc).every((key) => lists.some((list) => list === key))
  return known && lists.some((list) => Array.isArray(doc[list]))
}

export function convertWebhookFile(doc: Fields, name: string, context: ObjectContext): MigrationDraft {
  const found = lists.flatMap((list) => (Array.isArray(doc[list]) ? [[list, doc[list]] as const] : []))
  const { spec, secret } = specOf(Object.fromEntries(found), name, context)
  const draft = new MigrationDraft({ apiVersion, kind: 'MCPWebhookConfig', metadata: { name }, spec })
  draft.note('', 'renamed', `becomes MCPWebhookConfig ${name}: refer to it in webhookConfigRef`)
  if (secret !== undefined) draft.note('', 'differs', fillInText(secret))
  noteWebhooks(draft, '')
  settle(draft, context)
  return draft
}

/** Converts `validating_webhooks` and `mutating_webhooks` from a run configuration. */
export function convertWebhookFields({ reader, name, draft, context }: RunConfigParts): void {
  const found = lists.flatMap((list) => {
    const value = reader.raw(`${list}_webhooks`)
    return Array.isArray(value) && value.length > 0 ? [[list, value as readonly unknown[]] as const] : []
  })
  const [first] = found
  if (!first) return
  const { spec, secret } = specOf(Object.fromEntries(found), `${name}-webhooks`, context)
  const field = `${first[0]}_webhooks`
  const body = { apiVersion, kind: 'MCPWebhookConfig', metadata: { name: 'webhooks' }, spec }
  for (const { path, message } of context.violationsOf(body)) {
    const at = path.replace(/^spec\.(mutating|validating)/, '$1_webhooks')
    draft.note(at.startsWith('spec') ? field : at, 'refused', message)
  }
  const made = context.add('MCPWebhookConfig', `${name}-webhooks`, { spec })
  draft.doc['spec'] = { ...fieldsOf(draft.doc['spec']), webhookConfigRef: { name: made } }
  if (secret !== undefined) draft.note(field, 'differs', fillInText(secret))
  noteWebhooks(draft, field)
}

const fillInText = (secret: string): string =>
  `certificates and secrets exist only on one machine: fill in the values of Secret ${secret}`

type Lists = Readonly<Partial<Record<(typeof lists)[number], readonly unknown[]>>>

/** Returns the spec, and the name of the Secret for values from files. */
function specOf(
  webhookLists: Lists,
  wanted: string,
  context: ObjectContext,
): { readonly spec: Fields; readonly secret: string | undefined } {
  const keys = lists.flatMap((list) => (webhookLists[list] ?? []).flatMap((entry) => keysOf(fieldsOf(entry))))
  const stringData = Object.fromEntries(keys.map((key) => [key, '']))
  const secret = keys.length === 0 ? undefined : context.add('Secret', wanted, { type: 'Opaque', stringData })
  const spec = Object.fromEntries(
    lists.flatMap((list) => {
      const entries = webhookLists[list]
      return entries ? [[list, entries.map((entry) => webhookOf(entry, secret ?? ''))] as const] : []
    }),
  )
  return { spec, secret }
}

function keysOf({ name, tls_config: tls, hmac_secret_ref: hmac }: Fields): readonly string[] {
  const parts = Object.entries(tlsFiles).flatMap(([member, [key]]) =>
    isSet(fieldsOf(tls)[member]) ? [key] : [],
  )
  return [...parts, ...(isSet(hmac) ? ['hmac'] : [])].map((part) => `${String(webhookName(name))}-${part}`)
}

function webhookOf(entry: unknown, secret: string): unknown {
  if (!isFields(entry)) return entry
  const { name, timeout, failure_policy: policy, tls_config: tls, hmac_secret_ref: hmac, ...rest } = entry
  const reference = (part: string): Fields => ({ name: secret, key: `${String(webhookName(name))}-${part}` })
  const tlsConfig = tls === undefined || tls === null ? undefined : tlsOf(tls, reference)
  return {
    ...(name !== undefined && { name: webhookName(name) }),
    ...rest,
    ...(isSet(timeout) && { timeout: typeof timeout === 'number' ? `${timeout / 1e9}s` : timeout }),
    ...(isSet(policy) && { failurePolicy: policy }),
    ...(tlsConfig !== undefined && { tlsConfig }),
    ...(isSet(hmac) && { hmacSecretRef: reference('hmac') }),
  }
}

/** Keeps unknown members, which are then rejected or reported as lost. */
function tlsOf(tls: unknown, reference: (part: string) => Fields): unknown {
  if (!isFields(tls)) return tls
  const members = Object.entries(tls).flatMap(([member, value]): (readonly [string, unknown])[] => {
    const known = own(tlsFiles, member)
    if (known) return isSet(value) ? [[known[1], reference(known[0])]] : []
    return [[member === 'insecure_skip_verify' ? 'insecureSkipVerify' : member, value]]
  })
  return Object.fromEntries(members)
}

/** True unless the value is an empty string, zero or null, which ToolHive writes for unset members. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 0
}
