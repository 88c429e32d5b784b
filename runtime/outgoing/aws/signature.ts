/** Re-exports the signing library, so that it is loaded only when the first request is signed. */
export { SignatureV4 } from '@smithy/signature-v4'
