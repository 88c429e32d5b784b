/**
 * Every code a check can report: what was expected, and the fix that holds for everybody. Checks give a better fix where it
 * depends on what was seen, profiles where it depends on the identity provider.
 */
import { clusterCodes } from '../../../toolkit/cluster/codes.ts'
import { loginCodes } from './codes-login.ts'
import { metadataCodes } from './codes-metadata.ts'
import { networkCodes } from './codes-network.ts'
import { otherCodes } from './codes-other.ts'
import { sessionCodes } from './codes-session.ts'
import { signInCodes } from './codes-sign-in.ts'

export const codes = {
  'doctor.error': {
    expected: 'the check itself works',
    fix: 'This is an error of gatehouse, not of the target: run again, and report it with the text above.',
  },
  'doctor.interrupted': {
    expected: 'every check is carried out',
    fix: 'Run it again: Ctrl-C ended it. What was registered for a login was given back.',
  },
  ...networkCodes,
  ...metadataCodes,
  ...loginCodes,
  ...signInCodes,
  ...sessionCodes,
  ...otherCodes,
  ...clusterCodes,
} as const satisfies CodeTable

export type CodeTable = Readonly<Record<string, { readonly expected: string; readonly fix: string }>>

export type FindingCode = keyof typeof codes
