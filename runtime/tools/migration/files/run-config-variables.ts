/** Converts a server's variables: plain values in its manifest, secrets in a Secret. */
import type { Fields } from '../../../../schemas/index.ts'
import { isSecret } from '../../../toolkit/clients/index.ts'
import type { RunConfigParts } from './reader.ts'

export function variablesOf({ reader, name, draft, context }: RunConfigParts): Fields {
  const env: { name: string; value: string }[] = []
  const values: Record<string, string> = {}
  const targets: { key: string; targetEnvName: string }[] = []
  for (const [variable, value] of Object.entries(reader.fields('env_vars') ?? {})) {
    const text = String(value)
    if (!isSecret(variable, text)) env.push({ name: variable, value: text })
    else {
      values[variable] = text
      targets.push({ key: variable, targetEnvName: variable })
      draft.note(`env_vars.${variable}`, 'differs', 'looks like a secret: its value is now in a Secret')
    }
  }
  for (const [index, text] of reader.texts('secrets').entries()) {
    const [, secret = '', target] = /^([^,]+)(?:,target=(.+))?$/.exec(text) ?? []
    if (!/^[-._a-zA-Z0-9]+$/.test(secret)) {
      draft.note(`secrets[${index}]`, 'lost', 'does not have the form name,target=VARIABLE')
      continue
    }
    values[secret] ??= ''
    targets.push({ key: secret, targetEnvName: target ?? secret })
    draft.note(
      `secrets[${index}]`,
      'differs',
      `fill in key ${secret} of the Secret, because the file does not contain its value`,
    )
  }
  if (targets.length === 0) return env.length > 0 ? { env } : {}
  const made = context.add('Secret', `${name}-secrets`, { type: 'Opaque', stringData: values })
  const secrets = targets.map(({ key, targetEnvName }) => ({
    name: made,
    key,
    ...(key !== targetEnvName && { targetEnvName }),
  }))
  return { ...(env.length > 0 && { env }), secrets }
}
