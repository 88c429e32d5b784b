import { invalidConfig } from '../../../../schemas/index.ts'
import { parseTarget, shownUri } from '../../../config/index.ts'
import type { Examined } from './report.ts'
import { type ExamineOptions, examineRemote } from '../remote/examine.ts'

export type CommonOptions = Omit<ExamineOptions, 'target'>

/** Checks a remote server. Throws INVALID_CONFIG for an invalid URL. */
export async function remoteTarget(url: string, common: CommonOptions): Promise<Examined> {
  if (hasCredentials(url)) {
    throw invalidConfig(`${shownUri(url)}: the URL must not contain credentials; use --token-file`)
  }
  parseTarget(url, { withPath: true })
  const target = new URL(url)
  const { findings, profile } = await examineRemote({ ...common, target, issuer: url })
  if (profile === undefined) return { target: shownUri(url), findings }
  const { id, title, quirks } = profile
  return { target: shownUri(url), provider: { id, title, quirks }, findings }
}

function hasCredentials(url: string): boolean {
  const { username, password } = URL.canParse(url) ? new URL(url) : {}
  return Boolean(username) || Boolean(password)
}
