// The recurrent model against nn.GRU and nn.LSTM, from the files that tests/golden/make_rnn.py
// wrote.
#include "nunchi/models/rnn.h"
#include "tests/models/golden.h"

namespace nunchi::testing {
namespace {

class RnnGoldenFiles : public Golden<Rnn, RnnConfig>,
                       public ::testing::WithParamInterface<const char*> {};

TEST_P(RnnGoldenFiles, LogitsLossGradientsAndTenStepsAgreeWithPyTorch) {
  compare_everything(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Small, RnnGoldenFiles,
                         ::testing::Values("rnn_gru_none", "rnn_lstm_none", "rnn_gru_dot",
                                           "rnn_lstm_dot", "rnn_gru_additive",
                                           "rnn_lstm_additive"));

}  // namespace
}  // namespace nunchi::testing
