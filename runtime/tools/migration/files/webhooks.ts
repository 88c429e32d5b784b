/**
 * Webhooks of a server that ran on a developer's machine: the file of `--webhook-config` as an MCPWebhookConfig, and the lists
 * of a run configuration as one that the server refers to.
 *
 * Certificates and secrets are in files and stores of that machine: the Secret that is written has their keys, with empty
 * values, and a webhook with an empty one keeps its server from starting.
 */
import { apiVersion, type Fields, fieldsOf, isFields, own } from '../../../../schemas/index.ts'
import { MigrationDraft, type ObjectContext } from '../objects/draft.ts'
import { noteWebhooks, webhookName } from '../objects/webhook-rules.ts'
import { settle } from '../objects/object.ts'
import type { RunConfigParts } from './reader.ts'

const lists = ['mutating', 'validating'] as const

/** What is in a file there, and the reference that it becomes. */
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
  draft.note('', 'renamed', `is MCPWebhookConfig ${name}: name it in webhookConfigRef`)
  if (secret !== undefined) draft.note('', 'differs', toFill(secret))
  noteWebhooks(draft, '')
  settle(draft, context)
  return draft
}

/** `validating_webhooks` and `mutating_webhooks` of a run configuration. */
export function webhooksOf({ reader, name, draft, context }: RunConfigParts): void {
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
  if (secret !== undefined) draft.note(field, 'differs', toFill(secret))
  noteWebhooks(draft, field)
}

const toFill = (secret: string): string =>
  `certificates and secrets are of one machine: fill in the values of Secret ${secret}`

type Lists = Readonly<Partial<Record<(typeof lists)[number], readonly unknown[]>>>

/** The spec, and the name of the Secret that holds what was in files. */
function specOf(
  given: Lists,
  wanted: string,
  context: ObjectContext,
): { readonly spec: Fields; readonly secret: string | undefined } {
  const keys = lists.flatMap((list) => (given[list] ?? []).flatMap((entry) => keysOf(fieldsOf(entry))))
  const stringData = Object.fromEntries(keys.map((key) => [key, '']))
  const secret = keys.length === 0 ? undefined : context.add('Secret', wanted, { type: 'Opaque', stringData })
  const spec = Object.fromEntries(
    lists.flatMap((list) => {
      const entries = given[list]
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

/** Members that are not known stay as they are: they are refused, or told as lost. */
function tlsOf(tls: unknown, reference: (part: string) => Fields): unknown {
  if (!isFields(tls)) return tls
  const members = Object.entries(tls).flatMap(([member, value]): (readonly [string, unknown])[] => {
    const known = own(tlsFiles, member)
    if (known) return isSet(value) ? [[known[1], reference(known[0])]] : []
    return [[member === 'insecure_skip_verify' ? 'insecureSkipVerify' : member, value]]
  })
  return Object.fromEntries(members)
}

/** Empty texts, zero and null are what the file's programs write for a member that is not set. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 0
}
