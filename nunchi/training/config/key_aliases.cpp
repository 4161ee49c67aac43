#include "nunchi/training/config/key_aliases.h"

#include <vector>

namespace nunchi {
namespace {

struct Names {
  std::vector<std::string_view> aliases;
  std::vector<std::string_view> keys;
};

std::vector<KeyAlias> make_aliases() {
  const std::vector<Names> all = {
      {{"d_model", "hidden_size", "hidden_dim", "model_dim", "embed_dim", "embedding_dim",
        "encoder_embed_dim", "n_embd", "dim", "rnn_size", "dim_emb"},
       {"model.width"}},
      {{"layers", "num_layers", "n_layers", "n_layer", "num_hidden_layers", "depth"},
       {"model.layers", "model.encoder_layers", "model.decoder_layers"}},
      {{"enc_layers", "num_encoder_layers", "n_encoder_layers", "enc_depth"},
       {"model.encoder_layers"}},
      {{"dec_layers", "num_decoder_layers", "n_decoder_layers", "dec_depth"},
       {"model.decoder_layers"}},
      {{"n_heads", "num_heads", "nhead", "n_head", "num_attention_heads", "attention_heads",
        "transformer_heads"},
       {"model.heads"}},
      {{"num_kv_heads", "n_kv_heads", "num_key_value_heads"}, {"model.kv_heads"}},
      {{"ffn_dim", "dim_feedforward", "d_ff", "ffn", "ff_size", "ffn_size", "ffn_embed_dim",
        "intermediate_size", "transformer_ff", "n_inner"},
       {"model.feed_forward"}},
      {{"dropout_rate", "dropout_prob", "hidden_dropout_prob", "p_dropout"}, {"model.dropout"}},
      {{"attn_dropout", "attention_probs_dropout_prob"}, {"model.attention_dropout"}},
      {{"relu_dropout", "ffn_dropout"}, {"model.activation_dropout"}},
      {{"tie_embeddings", "share_embeddings", "tie_word_embeddings", "tied"},
       {"model.tied_embeddings"}},
      {{"max_position_embeddings", "n_positions", "max_target_positions"},
       {"model.max_positions", "data.max_length"}},
      {{"vocab_size", "vocab", "vocabulary_size", "n_vocab"}, {"tokenizer.vocabulary"}},
      {{"max_len", "max_seq_len", "max_seq_length", "max_sequence_length", "block_size"},
       {"data.max_length", "data.window"}},
      {{"train_data", "training_data", "train_file", "train_sets"}, {"data.train"}},
      {{"valid", "val", "dev", "dev_data", "valid_data", "eval_data", "validation_data",
        "valid_sets"},
       {"data.validation"}},
      {{"lr", "learning_rate", "learn_rate", "max_lr", "peak_lr"},
       {"training.schedule.learning_rate"}},
      {{"min_lr", "end_lr"}, {"training.schedule.final"}},
      {{"warmup_steps", "warmup_updates", "num_warmup_steps", "warm_up", "lr_warmup"},
       {"training.schedule.warmup"}},
      {{"scheduler", "lr_scheduler", "lr_scheduler_type", "lr_schedule", "decay_method"},
       {"training.schedule.kind"}},
      {{"batch_size", "max_tokens", "tokens_per_batch", "mini_batch", "mini_batch_words"},
       {"training.batch_tokens"}},
      {{"gradient_accumulation", "gradient_accumulation_steps", "accumulation_steps", "update_freq",
        "accum_count", "optimizer_delay"},
       {"training.accumulate"}},
      {{"epochs", "num_epochs", "n_epochs", "num_train_epochs", "max_epoch", "after_epochs"},
       {"training.max_epochs"}},
      {{"steps", "num_steps", "n_steps", "train_steps", "total_steps", "max_update", "max_updates",
        "iterations", "max_iters"},
       {"training.max_steps"}},
      {{"smoothing", "label_smoothing_factor"}, {"training.label_smoothing"}},
      {{"ema_decay", "exponential_smoothing", "moving_average", "average_decay"}, {"training.ema"}},
      {{"clip", "grad_clip", "clip_grad", "gradient_clipping", "max_grad_norm"},
       {"training.optimizer.clip_norm"}},
      {{"adam_beta1", "beta_1"}, {"training.optimizer.beta1"}},
      {{"adam_beta2", "beta_2"}, {"training.optimizer.beta2"}},
      {{"eps", "adam_epsilon", "adam_eps"}, {"training.optimizer.epsilon"}},
      {{"log_steps", "logging_steps", "log_interval", "disp_freq", "report_every"},
       {"training.log_every"}},
      {{"save_every", "save_steps", "save_interval", "save_freq", "checkpoint_every",
        "save_checkpoint_steps"},
       {"checkpoints.every"}},
      {{"keep_checkpoints", "save_total_limit", "keep_checkpoint"}, {"checkpoints.keep_last"}},
      {{"eval_every", "eval_steps", "eval_interval", "valid_every", "valid_freq", "valid_steps"},
       {"validation.every"}},
      {{"early_stopping", "early_stopping_patience"}, {"validation.patience"}},
      {{"beam", "num_beams", "beam_width"}, {"generation.beam_size", "validation.beam_size"}},
      {{"length_penalty", "lenpen"}, {"generation.normalize"}},
      {{"output_dir", "save_dir", "out", "out_dir", "run_dir"}, {"output"}},
      {{"random_seed", "manual_seed"}, {"seed"}},
      {{"pretrained", "pretrained_model", "init_from", "from_pretrained", "train_from"},
       {"initialize_from"}}};
  std::vector<KeyAlias> aliases;
  for (const Names& names : all) {
    for (const std::string_view alias : names.aliases) aliases.push_back({alias, names.keys});
  }
  return aliases;
}

}  // namespace

std::span<const KeyAlias> train_config_aliases() {
  static const std::vector<KeyAlias> aliases = make_aliases();
  return aliases;
}

}  // namespace nunchi
