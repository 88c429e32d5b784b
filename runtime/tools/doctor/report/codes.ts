/**
 * All codes that a check can report, each with the expected result and the general fix. A check returns a more specific
 * fix when the fix depends on the response; a profile does so when it depends on the identity provider.
 */
import { clusterCodes } from '../../../toolkit/cluster/codes.ts'
import { directoryCodes } from './codes-directory.ts'
import { loginCodes } from './codes-login.ts'
import { metadataCodes } from './codes-metadata.ts'
import { networkCodes } from './codes-network.ts'
import { otherCodes } from './codes-other.ts'
import { sessionCodes } from './codes-session.ts'
import { signInCodes } from './codes-sign-in.ts'

export const codes = {
  'doctor.error': {
    expected: 'the check itself works',
    fix: 'This is an error in gatehouse, not in the target: run the command again, and report the error with the text above.',
  },
  'doctor.interrupted': {
    expected: 'every check runs',
    fix: 'Interrupted by Ctrl-C: run the command again. Registrations and tokens from the login were cleaned up.',
  },
  ...networkCodes,
  ...metadataCodes,
  ...loginCodes,
  ...signInCodes,
  ...sessionCodes,
  ...directoryCodes,
  ...otherCodes,
  ...clusterCodes,
} as const satisfies CodeTable

export type CodeTable = Readonly<Record<string, { readonly expected: string; readonly fix: string }>>

export type FindingCode = keyof typeof codes
