/** One remote target of `gatehouse doctor`. */
import { invalidConfig } from '../../../../schemas/index.ts'
import { parseTarget, shownUri } from '../../../config/index.ts'
import type { Examined } from './report.ts'
import { type ExamineOptions, examineRemote } from '../remote/examine.ts'

export type CommonOptions = Omit<ExamineOptions, 'target'>

/** Throws INVALID_CONFIG when the URL is none. */
export async function remoteTarget(url: string, common: CommonOptions): Promise<Examined> {
  if (hasCredentials(url)) {
    throw invalidConfig(`${shownUri(url)}: a URL must not carry credentials; use --token-file`)
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
